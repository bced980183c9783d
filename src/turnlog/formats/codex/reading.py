"""A rollout of Codex, read in one pass: response items are the conversation, events tell what else happened.

A rollback drops the newest turns, so each turn remembers what it began behind. A file that continues another one
(`history_base`) is read behind the part of that one which it continues. A response is several items, and the count of
tokens that follows closes it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from itertools import takewhile
from typing import Any, cast

from msgspec import to_builtins
from msgspec.structs import force_setattr, replace

from turnlog.formats import Jump, Reading, Record, ResumePoint, Source, Step
from turnlog.formats._shared import growth
from turnlog.formats._shared.key import NONE, Keys, bound, digest_of
from turnlog.formats._shared.problem import UnknownRecords, report
from turnlog.formats._shared.records import heads, readable
from turnlog.formats._shared.value import count, fields, items, moment, text
from turnlog.formats.codex import items as response_items
from turnlog.formats.codex import line as lines
from turnlog.formats.codex.heading import first_meta, heading
from turnlog.formats.codex.items import ANSWERS, OUTPUTS, START, TOLD, CodexState, Meter
from turnlog.formats.codex.line import APART, QUIET, Begun, Done
from turnlog.log.block import AnyBlock, Text, ToolCall, ToolResult
from turnlog.log.entry import Compaction, Message, Note, Spent, Turn, TurnState
from turnlog.log.usage import Usage

_BARE: dict[str, None] = {"at": None, "turn": None, "usage": None, "model": None}
"""Not part of what tells a message from others: it may be read before its count is there."""
_MARKS = ("type", "record_type")
_ENDS: dict[str, TurnState] = {"task_complete": "completed", "turn_complete": "completed", "turn_aborted": "aborted"}


def read(source: Source, mark: ResumePoint | None = None, state: CodexState | None = None) -> Reading:
    """See `turnlog.formats`; with a mark, only what comes behind it."""
    header, state = heading(source), state or START
    reading = Reading(header=replace(header, title=state.title or header.title), steps=iter(()), facts={**state.facts})
    reading.steps = _Reader(source, reading, mark, state).steps()
    return reading


class _Reader:
    """What was said so far, and what is not complete yet."""

    def __init__(self, source: Source, reading: Reading, start: ResumePoint | None, state: CodexState) -> None:
        self._source = source
        self._reading = reading
        self._fork = reading.header.fork
        self._keys, self._meter = Keys(state.keys), Meter(state.counted)
        self._model, self._turn, self._begun, self._title = state.model, state.turn, state.begun, state.title
        self._answered: list[AnyBlock] | None = None
        """What the model said since its last response ended."""
        self._answered_at: datetime | None = None
        self._refused: Any = None
        self._call: ToolCall | None = None
        """The last of the tools that it called."""
        self._results: list[tuple[ToolResult, datetime | None]] = []
        """What tools answered to it: that may be there before the count of tokens is."""
        self._last = state.last
        """The key of the node before."""
        self._turns: list[str] = []
        """Behind which node each turn of a user began."""
        self._asked: list[Message] = []
        """What people said, which an early compaction keeps."""
        self._unknown = UnknownRecords(source.agent)
        self._out: list[Step] = []
        """Steps that are not taken yet."""
        self._offset = 0
        self._start = start
        self._given = start.steps if start is not None else 0
        self._next = 0  # from where on the next mark may be
        self._marked: tuple[Any, ...] = ()
        """The newest place that may be a mark, how many steps come before it, and what is known there."""

    def _mark(self) -> ResumePoint | None:
        if not self._marked or self._source.path.endswith(".zst"):
            return self._start
        offset, given, last, now, model, turn, begun = self._marked
        facts = growth.small(self._reading.facts)
        state = CodexState(now, last, model, turn, begun, self._title, self._keys.state(), facts)
        return ResumePoint(offset, given, to_builtins(state))

    def steps(self) -> Iterator[Step]:
        """All of it."""
        out = self._out
        take: Any = {
            lines.CodexOutput: self._output, lines.CustomOutput: self._output, lines.CodexCall: self._called,
            lines.Reasoning: self._thought, lines.CodexTalk: self._talk, lines.TokenCount: self._counted,
            Begun: self._begin, Done: self._done,
        }.get  # fmt: skip
        for offset, line in self._lines():
            self._offset = offset
            if type(line) is dict:
                self._offset = -1  # it may stand in the middle of a damaged line: no mark
                self._step(cast("dict[str, Any]", line), offset)
            else:
                payload = line.payload
                if (handler := take(type(payload))) is not None:
                    handler(payload, line.timestamp)
            while out:
                self._given += 1
                yield out.pop(0)
        self._reading.mark = self._mark()
        self._answer(None)
        yield from out
        self._unknown.report(self._reading.problems)

    def _lines(self) -> Iterator[tuple[int, Any]]:
        """The records of the file, behind those of the file that it continues."""
        start = self._start.offset if self._start is not None else 0
        own = heads(self._source.path, self._reading.problems, lines.decode_line, marks=_MARKS, start=start)
        if self._start is not None:
            yield from own
            return
        base = fields((first_meta(self._source.path) or {}).get("history_base"))
        if base and self._fork is not None and self._fork.source is None:
            problem = f"continues {self._fork.session}, which is not beside it: its beginning is missing"
            report(self._reading.problems, problem)
        elif base and self._fork is not None and self._fork.source is not None:
            end, goes_on = base.get("end_byte_offset"), self._next
            self._next = sys.maxsize  # a mark is a place in the file itself
            problems, older = self._reading.problems, self._fork.source.path
            before = readable(heads(older, problems, lines.decode_line), problems, older)
            yield from takewhile(lambda pair: not isinstance(end, int) or pair[0] < end, before)
            self._next = goes_on
        yield from own

    def _step(self, record: dict[str, Any], offset: int) -> None:
        kind, payload = record.get("type"), record.get("payload")
        if type(payload) is dict:
            about = cast("dict[str, Any]", payload)
            if kind == "event_msg" and about.get("type") in QUIET:
                return
            at = moment(record.get("timestamp"))
            if kind == "response_item":
                self._item(about, at)
            elif kind == "event_msg":
                self._event(about, at, offset)
            elif kind == "compacted":
                self._compacted(about, at)
            elif kind == "turn_context":
                self._context(about)
            elif kind == "session_meta":
                self._meta(about)
            elif kind not in APART:
                self._note(str(kind), record, at)
        elif isinstance(kind, str):
            self._item(record, moment(record.get("timestamp")))  # the bare items of 2025
        elif "record_type" not in record and "instructions" not in record:
            self._note("none", record, moment(record.get("timestamp")))

    def _meta(self, about: dict[str, Any]) -> None:
        system = text(fields(about.get("base_instructions")).get("text"))
        if system is not None:
            self._reading.facts.setdefault("system", system)

    def _context(self, about: dict[str, Any]) -> None:
        self._model = text(about.get("model")) or self._model
        for key in ("model", "effort", "approval_policy", "sandbox_policy"):
            if about.get(key) is not None:
                self._reading.facts[key] = about[key]

    def _begin(self, event: Begun, at: datetime | str | None) -> None:
        if self._answered is not None:
            self._answer(None)
        if self._offset >= self._next:
            self._may_mark()
        self._begun = self._last
        self._turn = text(event.turn_id)
        if self._turn is not None:
            self._turned("begin", None, at)

    def _done(self, event: Done, at: datetime | str | None, state: TurnState = "completed") -> None:
        if self._answered is not None:
            self._answer(None)
        if self._turn is not None:
            self._turned(state, text(event.reason), at)
        self._turn = self._begun = None

    def _event(self, about: dict[str, Any], at: datetime | None, offset: int) -> None:
        kind = str(about.get("type"))
        if kind == "token_count":
            self._answer(self._meter.spent(fields(about.get("info"))), at)
        elif kind in ("task_started", "turn_started"):
            self._begin(Begun(about.get("turn_id")), at)
        elif kind in _ENDS:
            self._done(Done(about.get("reason")), at, _ENDS[kind])
        elif kind == "thread_rolled_back":
            self._answer(None)
            self._rolled_back(count(about.get("num_turns")), at, offset)
        elif kind == "turn.completed":
            spent = response_items.usage_of(fields(about.get("usage")))
            if spent is not None:
                self._out.append(self._record(Spent(id="-", usage=spent, model=self._model), at))
        elif kind == "thread_name_updated":
            self._title = text(about.get("thread_name")) or text(about.get("name")) or self._title
            self._reading.header = replace(self._reading.header, title=self._title or self._reading.header.title)
        elif kind == "thread_goal_updated":
            self._reading.facts["goal"] = about.get("goal")
        elif kind == "patch_apply_end":
            paths = sorted(fields(about.get("changes")))
            data = {"call": about.get("call_id"), "changes": about.get("changes"), "success": about.get("success")}
            self._out.append(
                self._record(
                    Note(id="-", text=f"a patch was applied to {', '.join(paths) or 'nothing'}", data=data), at
                )
            )
        elif kind in ("error", "stream_error", "warning"):
            self._out.append(self._record(Note(id="-", text=text(about.get("message")) or kind, data=about), at))
        elif kind not in QUIET:
            self._note(kind, about, at)

    def _rolled_back(self, number: int, at: datetime | None, offset: int) -> None:
        if not number:
            return
        if self._start is not None and number > len(self._turns):
            raise growth.NeedsFullRead
        dropped = self._turns[-number:]
        del self._turns[-number:]
        if not dropped:
            report(self._reading.problems, f"a rollback of {number} turns, but there are none", offset=offset)
            return
        self._last = dropped[0]
        self._out.append(Jump(to=self._last, key=f"rollback at {offset}", why="rewind", at=at))

    def _may_mark(self) -> None:
        """Nothing that is open here began before this line."""
        self._next = self._offset + growth.APART
        given = self._given + len(self._out)
        self._marked = (self._offset, given, self._last, self._meter.now, self._model, self._turn, self._begun)
        self._keys.mark()

    def _output(self, item: lines.CodexOutput, at: datetime) -> None:
        output = item.output
        is_error = output.startswith(TOLD) and response_items.failed(output)
        call = item.call_id
        if call and self._answered is None:  # as it mostly is, and as `_told` does it
            result = ToolResult(call=call, content=output, is_error=is_error)
            self._last = self._keys.single(bound(call, output, 1 if is_error else 0))
            entry = Message(id="-", role="tool", blocks=[result], at=at, turn=self._turn)
            self._out.append(Record(entry=entry, key=self._last, names=NONE))
        else:
            self._told(ToolResult(call=call or str(item.id or ""), content=output, is_error=is_error), at)

    def _told(self, result: ToolResult, at: datetime | None) -> None:
        if self._answered is not None:
            self._results.append((result, at))
            return
        entry = Message(id="-", role="tool", blocks=[result], at=at, turn=self._turn)
        if result.call:
            self._last = self._keys.single(bound(result.call, result.content, 1 if result.is_error else 0))
        else:
            self._last = self._keys.of(replace(entry, **_BARE))
        self._out.append(Record(entry=entry, key=self._last, names=NONE))

    def _called(self, item: lines.CodexCall, at: datetime | None) -> None:
        call = response_items.called(item)
        self._answering(at).append(call)
        self._call = call

    def _thought(self, item: lines.Reasoning, at: datetime | None) -> None:
        self._answering(at).append(response_items.thought(item))

    def _talk(self, item: lines.CodexTalk, at: datetime | None) -> None:
        if item.role == "assistant":
            self._answering(at).extend(response_items.spoken(item))
        else:
            role = "user" if item.role == "user" else "system"
            self._said(response_items.message(role, [Text(text=part.text) for part in item.content]), at)

    def _counted(self, item: lines.TokenCount, at: str) -> None:
        self._answer(self._meter.counted(item.info) if item.info is not None else None, at)

    def _item(self, item: dict[str, Any], at: datetime | None) -> None:
        """An item of any kind."""
        kind = item.get("type")
        if kind in ANSWERS or (kind == "message" and item.get("role") == "assistant"):
            answer = response_items.answered([item])
            self._answering(at).extend(answer.blocks)
            self._refused = self._refused or answer.error
            for block in answer.blocks:
                if isinstance(block, ToolCall) and block.by is None:
                    self._call = block
        elif kind == "message":
            self._said(response_items.said(item), at)
        elif kind in OUTPUTS:
            self._told(response_items.result(item), at)
        elif kind != "ghost_snapshot":
            self._note(str(kind), item, at)

    def _said(self, message: Message, at: datetime | None) -> None:
        if self._answered is not None:
            self._answer(None)
        if self._offset >= self._next and self._begun is None:
            self._may_mark()
        if message.role == "user" and message.display is None:
            self._turns.append(self._last if self._begun is None else self._begun)
            self._begun = None
            self._asked.append(message)
        self._node(message, at)

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
            entry = Message(
                id="-", role="assistant", blocks=blocks, stop=stop, error=self._refused, at=self._answered_at,
                turn=self._turn, usage=spent, model=self._model,
            )  # fmt: skip
            call = self._call
            if call is not None and call.id:
                self._last = self._keys.single(bound(call.id, call.input, len(blocks) + 1))
            else:
                self._last = self._keys.of(replace(entry, **_BARE))
            self._out.append(Record(entry=entry, key=self._last, names=NONE))
            self._call = self._refused = None
            if self._results:
                results, self._results = self._results, []
                for result, when in results:
                    self._told(result, when)
        elif spent is not None:
            self._out.append(self._record(Spent(id="-", usage=spent, model=self._model), _at(at)))

    def _node(self, entry: Message | Compaction, at: datetime | None) -> None:
        record = self._record(entry, at)
        self._last = record.key or ""
        self._out.append(record)

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
            replacement = response_items.messages(items(history))
        elif self._start is not None:
            raise growth.NeedsFullRead
        else:
            replacement = [*self._asked, *([Message(role="user", blocks=[Text(text=summary)])] if summary else [])]
        self._asked = [message for message in replacement if message.role == "user"]
        sealed = response_items.sealed(items(history), summary or "")
        self._node(sealed or Compaction(replacement=list(replacement)), at)

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
