"""The application: starts, ends, and gives the terminal back as it was, whatever happens."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from traceback import format_exception
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import Screen

from turnlog.catalog import Catalog
from turnlog.catalog.ask.query import Filter
from turnlog.errors import TurnlogError
from turnlog.machine.environment import state_folder
from turnlog.tui.errand import Errands
from turnlog.tui.frame import Glance
from turnlog.tui.screens.changes import ChangesScreen
from turnlog.tui.screens.explanation import HelpScreen, keys_of
from turnlog.tui.screens.listing import ListScreen
from turnlog.tui.screens.reading import SessionScreen
from turnlog.tui.sessionlist import words_in
from turnlog.tui.terminal import StderrTerminal
from turnlog.version import __version__

if TYPE_CHECKING:
    from turnlog.catalog import Card
    from turnlog.log.entry import Note
    from turnlog.reader.viewing.desk import Desk
    from turnlog.reader.viewing.viewedsession import ViewedSession
    from turnlog.session import Home

_SIZE_S = 1.0
_END_S = 2.0
"""The maximum time for a clean exit after a signal, apart from what was confirmed."""


_GLANCED = 20
"""How many messages are drawn before the rest is read."""


class BrowserOutcome(NamedTuple):
    """How it ended: a session that was chosen, and what for; or the signal that ended it."""

    name: str = ""
    is_resumed: bool = False
    is_interrupted: bool = False
    signal: int = 0


class Browser(App[BrowserOutcome]):
    """Lists sessions and shows them; `pick` ends with the chosen session."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { overflow: hidden; }
    Input { border: none; height: 1; padding: 0; background: ansi_default; color: ansi_default; }
    Input:focus { border: none; background: ansi_default; background-tint: transparent 0%; }
    Input > .input--cursor { background: ansi_default; color: ansi_default; text-style: reverse; }
    Input > .input--selection { background: ansi_default; color: ansi_default; text-style: underline; }
    Input > .input--placeholder { color: ansi_default; text-style: dim; }
    Canvas { height: 1fr; }
    #foot, #head { height: 1; }
    #body { height: 1fr; }
    #text { width: 1fr; }
    #bar { width: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", "end at once", priority=True),
        Binding("ctrl+z", "suspend_process", "to the background; `fg` brings it back", priority=True),
        Binding("ctrl+q", "leave", show=False, priority=True),
    ]

    def __init__(
        self,
        catalog: Catalog,
        desk: Callable[[], Desk],
        query: str = "",
        *,
        is_picking: bool = False,
        open_page: Callable[[str], str] = str,
    ) -> None:
        super().__init__(driver_class=StderrTerminal, ansi_color=True)
        self.catalog = catalog
        self._make_desk = desk
        self._desk_kept: Desk | None = None
        self._opening = threading.Lock()
        self._open_page = open_page
        self.is_picking = is_picking
        self._query = query
        self.asking = Errands(self.call_later, "catalog")
        self.acting = Errands(self.call_later, "acting")
        self.fault: Exception | None = None

    def get_default_screen(self) -> ListScreen:
        """See `App`."""
        return ListScreen(self, self._query)

    def on_mount(self) -> None:
        """Signals end it as a key would."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._end_by, number)
        self.app_resume_signal.subscribe(self, self._draw_again)  # pyright: ignore[reportUnknownMemberType]
        self.set_interval(_SIZE_S, self._see_size)

    def _see_size(self) -> None:
        """Now and then Textual misses that the terminal has another size: then nothing fits until the next time."""
        if self.is_headless:
            return
        try:
            size = Size(*os.get_terminal_size(2))
        except OSError:
            return
        if size and size != self.screen.size:
            self.screen.post_message(events.Resize(size, size))

    def _draw_again(self, _: object) -> None:
        """Back from the background, Textual by itself draws only what changes from then on."""
        self.screen.refresh(layout=True)

    def _end_by(self, number: int) -> None:
        self.exit(BrowserOutcome(signal=number))
        # A terminal that is gone takes nothing any more: then nobody waits for it.
        threading.Thread(target=self._end_anyway, args=(number,), daemon=True).start()

    def _end_anyway(self, number: int) -> None:
        """Ends a program that hangs; of one that has ended by then, this thread is gone."""
        time.sleep(_END_S)
        self.acting.finish()  # a rewind that was confirmed is carried out
        os._exit(128 + number)

    def chose(self, name: str, query: str) -> None:
        """A session was chosen in the list: it is the answer, or it is opened."""
        if self.is_picking:
            self.exit(BrowserOutcome(name))
        else:
            self.push_screen(SessionScreen(self, name, query))

    @property
    def _desk(self) -> Desk:
        with self._opening:
            if self._desk_kept is None:
                self._desk_kept = self._make_desk()
            return self._desk_kept

    @property
    def home(self) -> Home:
        """Where our sessions are."""
        return self._desk.home

    def open(self, name: str) -> ViewedSession:
        """The session of that name, also if it was made a moment ago."""
        return self._desk.open(self._desk.card(name))

    def glance(self, name: str) -> Glance | None:
        """The end of a session of ours; None for another agent's."""
        from turnlog.reader.part import part_of

        card = self.catalog.find(name)
        if not card.is_ours:
            return None
        with self.home.read(card.id) as session:
            entries = list(part_of(session, last=_GLANCED).entries(session))
            return Glance(session.title or card.title or card.preview or "(no title)", entries)

    def notes_on(self, card: Card) -> list[Note]:
        """See `Desk`."""
        return self._desk.notes_on(card)

    def newest_place(self, name: str, query: str) -> str:
        """The entry in which the words of a query were last said in a session; empty for none."""
        hits = self.catalog.search(str(words_in(query).within(Filter("session", (f"={name}",)))), limit=5)
        return next((str(hit.seq or hit.entry) for hit in hits if hit.entry), "")

    def resume(self, name: str) -> None:
        """End, and become the agent of that session."""
        self.exit(BrowserOutcome(name, is_resumed=True))

    def open_page(self, name: str) -> str:
        """Open a session in the browser; gives what to tell of it."""
        return self._open_page(name)

    def show_changes(self, viewed: ViewedSession, turn: int) -> None:
        """Show what a turn did to files."""
        self.push_screen(ChangesScreen(self, viewed, turn))

    def explain(self, screen: Screen[Any]) -> None:
        """Show the keys of a screen, and those that are everywhere."""
        self.push_screen(HelpScreen([*keys_of(type(screen)), *keys_of(type(self))]))

    def close_errands(self) -> None:
        """Nothing more is asked; what was confirmed is done to its end."""
        self.asking.close()
        self.acting.finish()

    def leave(self) -> None:
        """End, nothing chosen."""
        self.exit(BrowserOutcome())

    def action_leave(self) -> None:
        """See `leave`."""
        self.leave()

    def action_interrupt(self) -> None:
        """End at once, as Ctrl-C does elsewhere."""
        self.exit(BrowserOutcome(is_interrupted=True))

    def bell(self) -> None:
        """Nothing here is worth a noise."""

    def _set_pointer_shape(self, shape: str) -> None:
        """The mouse looks as it does; some terminals take the sequence for a title."""

    def _fatal_error(self) -> None:
        """Textual would print a traceback; who started this says it in a line."""
        self.fault = self._exception
        self._close_messages_no_wait()


def browse(
    location: str | None, query: str, *, is_picking: bool = False, open_page: Callable[[str], str] = str
) -> BrowserOutcome:
    """Show the list until somebody chose or left. What goes wrong inside is told when the terminal is back."""
    with ExitStack() as stack:
        catalog = stack.enter_context(Catalog(location, agents=True, deferred=True))

        def open_desk() -> Desk:
            from turnlog.reader.viewing.desk import Desk
            from turnlog.session import open_home

            home = stack.enter_context(open_home(location))
            desk = Desk(home, catalog, location)
            stack.callback(desk.close)
            return desk

        browser = Browser(catalog, open_desk, query, is_picking=is_picking, open_page=open_page)
        try:
            outcome = browser.run()
        finally:
            browser.close_errands()
        if browser.fault is not None:
            raise _reported(browser.fault)
        return outcome or BrowserOutcome()


def _reported(fault: Exception) -> TurnlogError:
    """One line, and where the rest is."""
    message = f"{type(fault).__name__}: {fault}"
    path = Path(state_folder()) / "tui-report.txt"
    try:
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
        path.write_text(
            f"turnlog {__version__}\n{''.join(format_exception(fault))}", encoding="utf-8", errors="replace"
        )
    except OSError as error:
        return TurnlogError(message, hint=f"this is a fault in turnlog; no report: {error.strerror or error}")
    return TurnlogError(message, hint=f"this is a fault in turnlog; the report is {path}")
