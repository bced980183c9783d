"""The tool calls that have no result yet, and how far each of them came."""

from __future__ import annotations

from collections.abc import Iterator

from turnlog.log.block import ToolCall, calls_in
from turnlog.log.context import visible
from turnlog.log.context.toolturn import unanswered
from turnlog.log.entry import Answer, AnyEntry, Ask, Custom, Head, Message, Started
from turnlog.log.fold.opencall import OpenCall, PendingCall, add_mark, pending_call
from turnlog.thread.history import History


def pending_calls(history: History) -> list[PendingCall]:
    """The open calls of the conversation, oldest first."""
    return [pending_call(call, opened) for opened, call in open_calls(history)]


def open_calls(history: History) -> list[tuple[OpenCall, ToolCall]]:
    """The open calls of the conversation, as pairs of state and call.

    If the state does not have them, they are read once.
    """
    state = history.state
    if state.calls is not None:
        pairs_now = ((opened, _call_at(history, opened)) for opened in state.calls)
        return [(opened, call) for opened, call in pairs_now if call is not None]
    path = (history.whole(node) for node in history.path(state.head))
    replaced, kept = visible(path, history.whole_at)
    unanswered_calls = unanswered(replaced + kept)
    calls = [OpenCall(message.seq, call.id) for message, call in unanswered_calls]
    for mark in _marks(history, min((opened.entry for opened in calls), default=None)):
        add_mark(calls, mark)
    pairs = [(opened, call) for opened, (_, call) in zip(calls, unanswered_calls, strict=True)]
    is_plain = not any(calls_in(message.blocks) for message in replaced)
    if is_plain and all(_call_at(history, opened) == call for opened, call in pairs):
        state.calls = calls  # neither edited nor in a summary: later entries can be folded into this list
    return pairs


def is_waiting(history: History) -> bool:
    """Whether a tool call waits for an answer."""
    return any(opened.state == "waiting" for opened, _ in open_calls(history))


def _call_at(history: History, opened: OpenCall) -> ToolCall | None:
    entry = history.whole_at(opened.entry)
    blocks = entry.blocks if isinstance(entry, (Message, Custom)) else []
    return next((block for block in blocks if isinstance(block, ToolCall) and block.id == opened.call), None)


def _marks(history: History, after: int | None) -> Iterator[AnyEntry]:
    """The questions, answers and starts after entry `after`, oldest first, without those that a rewind left behind."""
    marks: list[AnyEntry] = []
    if after is not None:
        last: int | None = None
        for entry in history.back():
            if entry.seq <= after:
                break
            if last is not None and entry.seq > last:
                continue
            if isinstance(entry, Head):
                last = entry.asof
            elif isinstance(entry, (Ask, Answer, Started)):
                marks.append(entry)
    return reversed(marks)
