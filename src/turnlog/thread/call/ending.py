"""How the last turn of a conversation ended, or what cut it off."""

from __future__ import annotations

from typing import Any, Literal, cast

from msgspec import Struct

from turnlog.log.entry import Message, Turn
from turnlog.log.ids import word_of
from turnlog.machine.process import runs
from turnlog.thread.call.pending import open_calls
from turnlog.thread.history import History

TurnEnding = Literal["none", "open", "completed", "aborted", "failed", "cut off"]


class LastTurn(Struct, frozen=True):
    """The last turn of a conversation."""

    state: TurnEnding
    """`open` if it has no end, and its process is not known to be gone; `none` if the conversation is empty."""
    turn: str | None = None
    """The turn's id, if it began with a turn mark."""
    why: str | None = None
    """What went wrong, if that is known."""

    @property
    def is_cut_off(self) -> bool:
        """Whether the turn did not complete."""
        return self.state in ("aborted", "failed", "cut off")


def last_turn(history: History) -> LastTurn:
    """The last turn, from the marks of turns, or from the last message if there are no marks."""
    begun = history.state.turn
    if begun is not None:
        return _unfinished(history, begun, begun)
    message = next((node for node in history.path(history.state.head) if isinstance(node, Message)), None)
    if message is None:
        return LastTurn("none")
    if message.turn is None:
        return _of_message(history, message)
    mark = next((entry for entry in history.back() if isinstance(entry, Turn) and entry.turn == message.turn), None)
    if mark is None or mark.state == "begin":
        return _unfinished(history, message.turn, message.turn)
    return LastTurn(mark.state, message.turn, mark.error)


def _of_message(history: History, message: Message) -> LastTurn:
    if message.stop == "aborted":
        return LastTurn("aborted", why="the answer broke off")
    if message.stop == "error":
        return LastTurn("failed", why=error_text(message.error))
    if message.stop == "length":
        return LastTurn("cut off", why="the answer came to its limit of tokens")
    if message.role == "assistant" and not any(opened.entry == message.seq for opened, _ in open_calls(history)):
        return LastTurn("completed")
    return _unfinished(history, None, message.id)


def _unfinished(history: History, turn: str | None, entry_id: str) -> LastTurn:
    """The ending of a turn without an end: `cut off` if the process that made the id `entry_id` is known to be gone."""
    who = history.state.writers.get(word_of(entry_id))
    if who is None or runs(who) is not False:
        return LastTurn("open", turn)
    return LastTurn("cut off", turn, f"process {who['pid']} on {who['host']} is gone")


def error_text(error: Any) -> str | None:
    """An error as text: its message, or its type."""
    fields = cast("dict[str, Any]", error) if isinstance(error, dict) else {"message": error}
    message = fields.get("message") or fields.get("type")
    return None if message is None else str(message)
