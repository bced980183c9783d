"""What every page works with: the home, the catalog, the sessions that lie open."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from starlette.requests import Request

from turnlog.errors import Invalid

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from turnlog.catalog import Card, Catalog
    from turnlog.reader.viewing.desk import Desk
    from turnlog.reader.viewing.viewedsession import ViewedSession
    from turnlog.session import Home
    from turnlog.web.stream import Streams


class Viewer(NamedTuple):
    """What all pages of one server share."""

    home: Home
    catalog: Catalog
    desk: Desk
    streams: Streams
    page_token: str
    is_read_only: bool
    location: str | None
    folder: str
    """Where it was started: what "this folder" is."""
    change_executor: Executor
    """Where pages change something. The server waits for it when it ends."""
    problems: dict[tuple[str, int], list[str]]
    """Why paths stayed as they are, by session and entry: the log only has the paths."""

    def open(self, name: str) -> ViewedSession:
        """Opens a session for reading, and takes in what is new."""
        card = self.desk.card(name)
        viewed = self.desk.open(card)
        with viewed.mutex:
            viewed.card = card
            viewed.refresh()
        return viewed

    def can_change(self, card: Card) -> bool:
        """Whether a session can be changed from here."""
        return card.is_ours and not self.is_read_only


def check_ours(card: Card) -> None:
    """Refuse a session of another agent: those are only read."""
    if not card.is_ours:
        raise Invalid(f"{card.name} is a session of {card.agent}, which is only read",
                      hint=f"`turnlog import {card.name}` imports it first")  # fmt: skip


def viewer_of(request: Request) -> Viewer:
    """Returns the viewer of the server that got the request."""
    return request.app.state.viewer


def name_in(request: Request) -> str:
    """Returns the name of the session in an address."""
    return str(request.path_params["name"]).replace("%2F", "/")
