"""Sessions on the terminal, to choose from: `turnlog[tui]`, where it can be used."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from turnlog.cli.frame.exitcode import Exit
from turnlog.cli.frame.home import home_location
from turnlog.cli.frame.notes import tell
from turnlog.cli.frame.question import can_ask
from turnlog.errors import Unsupported
from turnlog.reader.naming.candidate import SeveralFit

if TYPE_CHECKING:
    from turnlog.tui.browser import BrowserOutcome

NOTHING_CHOSEN = 1
_INSTALL = "pip install 'turnlog[tui]'"
_T = TypeVar("_T")


def can_browse() -> bool:
    """Whether there is a terminal to draw on, and somebody to press keys."""
    return can_ask(as_json=False) and os.environ.get("TERM", "") not in ("", "dumb")


def browse(query: str, *, what: str, hint: str, is_picking: bool = True) -> BrowserOutcome:
    """Show the list, `query` typed already. Interrupts and signals end the command as they always do."""
    if not can_browse():
        term = os.environ.get("TERM", "")
        why = f"TERM={term!r} cannot show it" if can_ask(as_json=False) else "there is none"
        raise Unsupported(f"{what} needs a terminal, and {why}", hint=hint)
    has_no_colour = os.environ.get("NO_COLOR")
    try:
        from turnlog.tui.browser import browse as show
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("textual", "rich"):
            raise
        raise Unsupported(f"{what} needs Textual", hint=_INSTALL) from None
    from turnlog.cli.frame.webpage import PageServer

    try:
        with PageServer() as pages:
            outcome = show(home_location(), query, is_picking=is_picking, open_page=pages.show)
    finally:
        if has_no_colour is not None:
            os.environ["NO_COLOR"] = has_no_colour  # Textual takes it out, and the agent may be next
    if outcome.is_interrupted:
        raise KeyboardInterrupt
    if outcome.signal:
        raise Exit(128 + outcome.signal)
    return outcome


def choose_session(query: str = "", *, what: str) -> str:
    """The name of the session that was chosen; ends the command where none was."""
    outcome = browse(query, what=what, hint="`turnlog ls --all` lists them; give the command its name")
    if not outcome.name:
        tell("nothing was chosen")
        raise Exit(NOTHING_CHOSEN)
    return outcome.name


def find_or_choose(word: str, find: Callable[[str], _T], what: str, *, as_json: bool) -> _T:
    """What `find` gives for a word; where the word fits several, one of them is chosen on the terminal."""
    try:
        return find(word)
    except SeveralFit as several:
        if several.is_numbered or as_json or not can_browse():
            raise
        from importlib.util import find_spec

        if find_spec("textual") is None:
            several.hint = f"{several.hint}, or choose from a list: {_INSTALL}"
            raise
    return find(choose_session(f'session:"{word}"', what=f"`turnlog {what}`"))
