"""The tool calls of a conversation without a result, and the state of each: asked for, allowed, started."""

# Without `from __future__ import annotations`, as in `log/entry.py`.

from copy import copy
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from turnlog.log.block import ToolCall, ToolResult, answered_by, calls_in
from turnlog.log.entry import Answer, Ask, Compaction, Custom, Edit, Entry, Message, Started

if TYPE_CHECKING:
    CallState = Literal["open", "waiting", "allowed", "denied", "started"]
else:
    CallState = str


class OpenCall(Struct, omit_defaults=True):
    """A call without a result: the entry that it is in, and the newest entries about it."""

    entry: int
    call: str
    ask: int = 0
    answer: int = 0
    """The answer to that ask which counts."""
    allow: bool = False
    started: int = 0

    @property
    def state(self) -> CallState:
        """The newest known state of the call."""
        if self.started > self.ask:  # whatever the answer was, it may have run
            return "started"
        if not self.ask:
            return "open"
        if not self.answer:
            return "waiting"
        return "allowed" if self.allow else "denied"


class PendingCall(ToolCall, tag="tool_call", frozen=True, gc=True, dict=True):
    """A call without a result, and its state.

    It is a `ToolCall`, because programs run pending calls just as they run those of a new response. The state is not a
    field, because fields are encoded: encoded as a block, this is only the call.
    """

    @property
    def _opened(self) -> OpenCall:
        return self.__dict__["opened"]

    @property
    def state(self) -> CallState:
        """`open`, `waiting` for an answer, `allowed`, `denied`, or `started`: it may have run, in whole or in part."""
        return self._opened.state

    @property
    def ask(self) -> int:
        """The entry that asks whether the call may be run; 0 for none."""
        return self._opened.ask

    @property
    def is_started(self) -> bool:
        """Whether the call was ever started, even if it was asked about since."""
        return self._opened.started > 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolCall) and all(
            getattr(self, name) == getattr(other, name) for name in ToolCall.__struct_fields__
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = ToolCall.__hash__


def pending_call(call: ToolCall, opened: OpenCall) -> PendingCall:
    """Return a call together with its state."""
    pending = PendingCall(**{name: getattr(call, name) for name in ToolCall.__struct_fields__})
    vars(pending)["opened"] = copy(opened)
    return pending


def newest(opened: list[OpenCall], call: str) -> OpenCall | None:
    """Return the newest open call with that id."""
    return next((candidate for candidate in reversed(opened) if candidate.call == call), None)


# `add_message` and `add_mark` change the list. `after_compaction` and `after_edit` return one, or None if folding
# cannot tell: then the path is read again.


def add_message(opened: list[OpenCall], entry: Message | Custom) -> None:
    """Fold a message that calls tools, or has their results."""
    if entry.role == "tool":
        for block in entry.blocks:
            if isinstance(block, ToolResult):
                index = answered_by(block.call, [(one.entry, one.call) for one in opened])
                if index is not None:
                    del opened[index]
    elif entry.role == "assistant":
        opened += [OpenCall(entry.seq, call.id) for call in calls_in(entry.blocks)]


def after_compaction(opened: list[OpenCall], entry: Compaction) -> list[OpenCall] | None:
    """Fold a compaction: a call that the model no longer sees is not open any more."""
    for item in entry.replacement:
        if not isinstance(item, Message) or calls_in(item.blocks):
            return None
    return [one for one in opened if entry.keep and one.entry >= entry.keep]


def after_edit(opened: list[OpenCall], entry: Edit) -> list[OpenCall] | None:
    """Fold an edit. An edited result is still a result; another edit may concern a call, or its only result."""
    blocks = entry.blocks or []
    return opened if blocks and all(isinstance(block, ToolResult) for block in blocks) else None


def add_mark(opened: list[OpenCall], entry: Entry) -> None:
    """Fold a mark about a call."""
    if isinstance(entry, Answer):
        asked = next((asked for asked in opened if asked.ask == entry.ask), None)
        if asked is not None and (not asked.answer or asked.answer == entry.over):
            asked.answer, asked.allow = entry.seq, entry.allow
    elif isinstance(entry, (Ask, Started)):
        asked = next((asked for asked in opened if (asked.entry, asked.call) == (entry.entry, entry.call)), None)
        if asked is None:
            return
        if isinstance(entry, Started):
            asked.started = entry.seq
        else:
            asked.ask, asked.answer, asked.allow = entry.seq, 0, False
