"""The tool calls of a conversation that have no result yet, and what is known of each: asked for, allowed, started."""

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
    """A call without a result: where it stands, and the newest entries about it."""

    entry: int
    call: str
    ask: int = 0
    answer: int = 0
    """The first answer to that."""
    allow: bool = False
    started: int = 0

    @property
    def state(self) -> CallState:
        """What was said of it last."""
        if self.started > self.ask:  # whatever was answered: it may have run
            return "started"
        if not self.ask:
            return "open"
        if not self.answer:
            return "waiting"
        return "allowed" if self.allow else "denied"


class PendingCall(ToolCall, tag="tool_call", frozen=True, gc=True, dict=True):
    """A call without a result, and how far it came.

    It is a `ToolCall`, because programs run what is pending as they run the calls of an answer. What is known of it is
    no field, because fields are encoded: as a block, this is the call and nothing else.
    """

    @property
    def _opened(self) -> OpenCall:
        return self.__dict__["opened"]

    @property
    def state(self) -> CallState:
        """`open`, `waiting` for an answer, `allowed`, `denied`, or `started`: it may have run, or a part of it."""
        return self._opened.state

    @property
    def ask(self) -> int:
        """The entry that asks whether it may be run; 0 for none."""
        return self._opened.ask

    @property
    def is_started(self) -> bool:
        """Whether it was ever started, whatever was asked since."""
        return self._opened.started > 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolCall) and all(
            getattr(self, name) == getattr(other, name) for name in ToolCall.__struct_fields__
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = ToolCall.__hash__


def pending_call(call: ToolCall, opened: OpenCall) -> PendingCall:
    """A call with what is known of it."""
    pending = PendingCall(**{name: getattr(call, name) for name in ToolCall.__struct_fields__})
    vars(pending)["opened"] = copy(opened)
    return pending


def newest(opened: list[OpenCall], call: str) -> OpenCall | None:
    """The newest of that id."""
    return next((one for one in reversed(opened) if one.call == call), None)


# ── one more entry ────────────────────────────────────────────────────────────────────────────────
# Each gives None where the entries alone do not tell: then the path is read again.


def with_message(opened: list[OpenCall], entry: Message | Custom) -> None:
    """A message asks for tools, or has their results."""
    if entry.role == "tool":
        for block in entry.blocks:
            if isinstance(block, ToolResult):
                index = answered_by(block.call, [(one.entry, one.call) for one in opened])
                if index is not None:
                    del opened[index]
    elif entry.role == "assistant":
        opened += [OpenCall(entry.seq, call.id) for call in calls_in(entry.blocks)]


def with_compaction(opened: list[OpenCall], entry: Compaction) -> list[OpenCall] | None:
    """A call that the model no longer sees is not open any more."""
    for item in entry.replacement:
        if not isinstance(item, Message) or calls_in(item.blocks):
            return None
    return [one for one in opened if entry.keep and one.entry >= entry.keep]


def with_edit(opened: list[OpenCall], entry: Edit) -> list[OpenCall] | None:
    """Shortened results are results; anything else may have been a call, or the only result of one."""
    blocks = entry.blocks or []
    return opened if blocks and all(isinstance(block, ToolResult) for block in blocks) else None


def with_mark(opened: list[OpenCall], entry: Entry) -> None:
    """Something was said about a call."""
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
