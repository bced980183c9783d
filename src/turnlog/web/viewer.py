"""What every page works with: the home, the catalog, the sessions that lie open."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from starlette.requests import Request

from turnlog.errors import NotFound

if TYPE_CHECKING:
    from turnlog.catalog import Card, Catalog
    from turnlog.reader.desk import Desk, LookedAt
    from turnlog.session import Home
    from turnlog.web.stream import Streams


class Viewer(NamedTuple):
    """One server's."""

    home: Home
    catalog: Catalog
    desk: Desk
    streams: Streams
    page_token: str
    is_read_only: bool
    location: str | None
    folder: str
    """Where it was started: what "this folder" is."""

    def card(self, name: str) -> Card:
        """The session of that name, also if it was made a moment ago."""
        try:
            return self.catalog.find(name)
        except NotFound:
            self.catalog.sync()
            return self.catalog.find(name)

    def open(self, name: str) -> LookedAt:
        """The same, open for reading, as it is now."""
        card = self.card(name)
        looked = self.desk.open(card)
        with looked.mutex:
            looked.card = card
            looked.look()
        return looked


def viewer_of(request: Request) -> Viewer:
    """That of the server which was asked."""
    return request.app.state.viewer


def name_in(request: Request) -> str:
    """The name of the session in an address."""
    return str(request.path_params["name"]).replace("%2F", "/")
