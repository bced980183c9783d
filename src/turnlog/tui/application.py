"""The application, as its screens know it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from textual.screen import Screen

    from turnlog.catalog import Card, Catalog
    from turnlog.log.entry import Note
    from turnlog.reader.viewing.viewedsession import ViewedSession
    from turnlog.session import Home
    from turnlog.tui.errand import Errands
    from turnlog.tui.frame import Glance


class Application(Protocol):
    """What every screen works with."""

    catalog: Catalog
    asking: Errands
    """Runs queries of the catalog."""
    acting: Errands
    """Runs changes; the program waits for them before it ends."""
    is_picking: bool
    """Whether a session is only to be chosen."""

    def chose(self, name: str, query: str) -> None:
        """A session was chosen in the list, which was narrowed by that query."""
        ...

    def leave(self) -> None:
        """End, nothing chosen."""
        ...

    def explain(self, screen: Screen[Any]) -> None:
        """Show the keys of that screen."""
        ...

    def open(self, name: str) -> ViewedSession:
        """The session of that name, open for reading. Not where the screens are drawn: it may take a while."""
        ...

    def glance(self, name: str) -> Glance | None:
        """The end of a session of ours; None for another agent's."""
        ...

    def notes_on(self, card: Card) -> list[Note]:
        """What somebody noted on another agent's session. In one of ours, notes stand where they were written."""
        ...

    def newest_place(self, name: str, query: str) -> str:
        """The entry in which the words of a query were last said in a session; empty for none."""
        ...

    def resume(self, name: str) -> None:
        """End, and become the agent of that session."""
        ...

    def open_page(self, name: str) -> str:
        """Open a session in the browser; gives what to tell of it."""
        ...

    def show_changes(self, viewed: ViewedSession, turn: int) -> None:
        """Show what a turn did to files."""
        ...

    @property
    def home(self) -> Home:
        """Where our sessions are."""
        ...
