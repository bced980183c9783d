"""The conversation of a rollout: a response is several items, and the count of tokens that follows closes it."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any

from msgspec.structs import force_setattr, replace

from turnlog.formats import Reading, Record, ResumePoint, SessionHeader, Source, Step
from turnlog.formats._shared import growth
from turnlog.formats._shared.key import NONE, Keys, bound, digest_of
from turnlog.formats._shared.unknown import UnknownRecords
from turnlog.formats._shared.value import items, moment, text
from turnlog.formats.codex.items import (
    ANSWERS,
    OUTPUTS,
    TOLD,
    Meter,
    answered,
    called,
    failed,
    message,
    messages,
    result,
    said,
    spoken,
    thought,
)
from turnlog.formats.codex.line import CodexCall, CodexOutput, CodexTalk, Reasoning, TokenCount
from turnlog.log.block import AnyBlock, Text, ToolCall, ToolResult
from turnlog.log.entry import Compaction, Message, Spent, Turn, TurnState
from turnlog.log.usage import Usage

_BARE: dict[str, None] = {"at": None, "turn": None, "usage": None, "model": None}
"""Not part of what tells a message from others: it may be read before its count is there."""


class Conversation:
    """What was said so far, and what is not complete yet."""

    def __init__(self, source: Source, reading: Reading, header: SessionHeader) -> None:
        self._source = source
        self._reading = reading
        self._fork = header.fork
        self._keys = Keys()
        self._meter = Meter()
        self._model: str | None = None
        self._turn: str | None = None
        self._answered: list[AnyBlock] | None = None
        """What the model said since its last response ended."""
        self._answered_at: datetime | None = None
        self._refused: Any = None
        self._call: ToolCall | None = None
        """The last of the tools that it called."""
        self._results: list[tuple[ToolResult, datetime | None]] = []
        """What tools answered to it: that may be there before the count of tokens is."""
        self._last = ""
        """The key of the node before."""
        self._turns: list[str] = []
        """Behind which node each turn of a user began."""
        self._begun: str | None = None
        self._asked: list[Message] = []
        """What people said, which an early compaction keeps."""
        self._title: str | None = None
        self._unknown = UnknownRecords()
        self._out: list[Step] = []
        """Steps that are not taken yet."""
        self._offset = 0
        self._given = 0
        self._next = 0  # from where on the next mark may be
        self._start: ResumePoint | None = None
        self._marked: tuple[Any, ...] = ()
        """The newest place that may be a mark, how many steps come before it, and what is known there."""

    def _may_mark(self) -> None:
        """Nothing that is open here began before this line."""
        self._next = self._offset + growth.APART
        given = self._given + len(self._out)
        self._marked = (self._offset, given, self._last, self._meter.now, self._model, self._turn, self._begun)
        self._keys.mark()

    def _output(self, item: CodexOutput, at: datetime) -> None:
        told = item.output
        is_error = told.startswith(TOLD) and failed(told)
        call = item.call_id
        if call and self._answered is None:  # as it mostly is, and as `_told` does it
            made = ToolResult(call=call, content=told, is_error=is_error)
            self._last = self._keys.single(bound(call, told, 1 if is_error else 0))
            entry = Message(id="-", role="tool", blocks=[made], at=at, turn=self._turn)
            self._out.append(Record(entry=entry, key=self._last, names=NONE))
        else:
            self._told(ToolResult(call=call or str(item.id or ""), content=told, is_error=is_error), at)

    def _told(self, told: ToolResult, at: datetime | None) -> None:
        if self._answered is not None:
            self._results.append((told, at))
            return
        made = Message(id="-", role="tool", blocks=[told], at=at, turn=self._turn)
        if told.call:
            self._last = self._keys.single(bound(told.call, told.content, 1 if told.is_error else 0))
        else:
            self._last = self._keys.of(replace(made, **_BARE))
        self._out.append(Record(entry=made, key=self._last, names=NONE))

    def _called(self, item: CodexCall, at: datetime | None) -> None:
        made = called(item)
        blocks = self._answered
        (blocks if blocks is not None and not self._results else self._answering(at)).append(made)
        self._call = made

    def _thought(self, item: Reasoning, at: datetime | None) -> None:
        blocks = self._answered
        (blocks if blocks is not None and not self._results else self._answering(at)).append(thought(item))

    def _talk(self, item: CodexTalk, at: datetime | None) -> None:
        if item.role == "assistant":
            self._answering(at).extend(spoken(item))
        else:
            role = "user" if item.role == "user" else "system"
            self._said(message(role, [Text(text=part.text) for part in item.content]), at)

    def _counted(self, item: TokenCount, at: str) -> None:
        self._answer(self._meter.counted(item.info) if item.info is not None else None, at)

    def _item(self, item: dict[str, Any], at: datetime | None) -> None:
        """An item of any kind."""
        kind = item.get("type")
        if kind in ANSWERS or (kind == "message" and item.get("role") == "assistant"):
            made = answered([item])
            self._answering(at).extend(made.blocks)
            self._refused = self._refused or made.error
            for block in made.blocks:
                if isinstance(block, ToolCall) and block.by is None:
                    self._call = block
        elif kind == "message":
            self._said(said(item), at)
        elif kind in OUTPUTS:
            self._told(result(item), at)
        elif kind != "ghost_snapshot":
            self._note(str(kind), item, at)

    def _said(self, made: Message, at: datetime | None) -> None:
        if self._answered is not None:
            self._answer(None)
        if self._offset >= self._next and self._begun is None:
            self._may_mark()
        if made.role == "user" and made.display is None:
            self._turns.append(self._last if self._begun is None else self._begun)
            self._begun = None
            self._asked.append(made)
        self._node(made, at)

    def _answering(self, at: datetime | None) -> list[AnyBlock]:
        """Where more goes of what the model says."""
        if self._results:
            self._answer(None)
        if self._answered is None:
            if self._offset >= self._next:
                self._may_mark()
            self._answered, self._answered_at = [], at
        return self._answered

    def _answer(self, spent: Usage | None, at: datetime | str | None = None) -> None:
        """What the model said is complete, and what it cost is known if its count follows."""
        blocks = self._answered
        if blocks is not None:
            self._answered = None
            stop = "error" if self._refused else "tool_use" if self._call is not None else "end"
            made = Message(
                id="-", role="assistant", blocks=blocks, stop=stop, error=self._refused, at=self._answered_at,
                turn=self._turn, usage=spent, model=self._model,
            )  # fmt: skip
            call = self._call
            if call is not None and call.id:
                self._last = self._keys.single(bound(call.id, call.input, len(blocks) + 1))
            else:
                self._last = self._keys.of(replace(made, **_BARE))
            self._out.append(Record(entry=made, key=self._last, names=NONE))
            self._call = self._refused = None
            if self._results:
                results, self._results = self._results, []
                for told, when in results:
                    self._told(told, when)
        elif spent is not None:
            self._out.append(self._record(Spent(id="-", usage=spent, model=self._model), _at(at)))

    def _node(self, entry: Message | Compaction, at: datetime | None) -> None:
        made = self._record(entry, at)
        self._last = made.key or ""
        self._out.append(made)

    def _record(self, entry: Any, at: datetime | None) -> Record:
        key = self._keys.of(entry)
        force_setattr(entry, "at", at)
        force_setattr(entry, "turn", self._turn)
        return Record(entry=entry, key=key, names=NONE)

    def _compacted(self, about: dict[str, Any], at: datetime | None) -> None:
        self._answer(None)
        history = about.get("replacement_history")
        summary = text(about.get("message"))
        replacement: list[Message] = []
        if isinstance(history, list):
            replacement = messages(items(history))
        elif self._start is not None:
            raise growth.Back
        else:
            replacement = [*self._asked, *([Message(role="user", blocks=[Text(text=summary)])] if summary else [])]
        self._asked = [message for message in replacement if message.role == "user"]
        self._node(Compaction(replacement=list(replacement)), at)

    def _turned(self, state: TurnState, error: str | None, at: datetime | str | None) -> None:
        key = self._keys.next(_turn_digest(state, error))
        entry = Turn(id="-", state=state, error=error, at=_at(at), turn=self._turn)
        self._out.append(Record(entry=entry, key=key, names=NONE))

    def _note(self, kind: str, data: dict[str, Any], at: datetime | None) -> None:
        self._out.append(self._record(self._unknown.note(kind, data), at))


@lru_cache(maxsize=16)
def _turn_digest(state: TurnState, error: str | None) -> str:
    return digest_of(Turn(id="-", state=state, error=error))


def _at(at: datetime | str | None) -> datetime | None:
    """When a usual event was: few of them have to be asked."""
    return moment(at) if isinstance(at, str) else at
