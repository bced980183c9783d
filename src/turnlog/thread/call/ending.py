"""How the last turn of a conversation ended, and by what it was cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from msgspec import Struct

from turnlog.log.entry import Message, Turn
from turnlog.log.ids import word_of
from turnlog.machine.process import lives
from turnlog.thread.call.pending import open_calls
from turnlog.thread.history import History

if TYPE_CHECKING:
    TurnEnding = Literal["none", "open", "completed", "aborted", "failed", "cut off"]
else:
    TurnEnding = str


class LastTurn(Struct, frozen=True):
    """The last turn of a conversation."""

    state: TurnEnding
    """`open` where nobody ended it and nobody is known to be gone; `none` where nothing was said."""
    turn: str | None = None
    """Its name, where it was begun as one."""
    why: str | None = None
    """What went wrong, as far as that is known."""

    @property
    def is_cut_off(self) -> bool:
        """Whether it came to no end of its own."""
        return self.state in ("aborted", "failed", "cut off")


def last_turn(history: History) -> LastTurn:
    """From the marks of turns, and where there are none from the last thing that was said."""
    begun = history.state.turn
    if begun is not None:
        return _unfinished(history, begun, begun)
    said = next((node for node in history.path(history.state.head) if isinstance(node, Message)), None)
    if said is None:
        return LastTurn("none")
    if said.turn is None:
        return _of_message(history, said)
    mark = next((entry for entry in history.back() if isinstance(entry, Turn) and entry.turn == said.turn), None)
    if mark is None or mark.state == "begin":
        return _unfinished(history, said.turn, said.turn)
    return LastTurn(mark.state, said.turn, mark.error)


def _of_message(history: History, said: Message) -> LastTurn:
    if said.stop == "aborted":
        return LastTurn("aborted", why="the answer broke off")
    if said.stop == "error":
        return LastTurn("failed", why=_told(said.error))
    if said.stop == "length":
        return LastTurn("cut off", why="the answer came to its limit of tokens")
    if said.role == "assistant" and not any(known.entry == said.seq for known, _ in open_calls(history)):
        return LastTurn("completed")
    return _unfinished(history, None, said.id)


def _unfinished(history: History, turn: str | None, made: str) -> LastTurn:
    """By whoever made that id: is the process still there?"""
    who = history.state.writers.get(word_of(made))
    if who is None or lives(who) is not False:
        return LastTurn("open", turn)
    return LastTurn("cut off", turn, f"process {who['pid']} on {who['host']} is gone")


def _told(error: Any) -> str | None:
    """An error as text: its message, or what kind it is."""
    said = cast("dict[str, Any]", error) if isinstance(error, dict) else {"message": error}
    told = said.get("message") or said.get("type")
    return None if told is None else str(told)
