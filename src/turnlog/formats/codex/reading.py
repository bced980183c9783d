"""A rollout of Codex, read in one pass: response items are the conversation, events tell what else happened.

A rollback drops the newest turns, so each turn remembers what it began behind. A file that continues another one
(`history_base`) is read behind the part
of that one which it continues.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from itertools import takewhile
from typing import Any, cast

from msgspec import to_builtins
from msgspec.structs import replace

from turnlog.formats import Jump, Problem, Reading, ResumePoint, Source, Step
from turnlog.formats._shared.growth import Back, settled, small, state_of
from turnlog.formats._shared.key import Keys
from turnlog.formats._shared.records import heads, tell
from turnlog.formats._shared.value import count, fields, moment, text
from turnlog.formats.codex.conversation import Conversation
from turnlog.formats.codex.heading import first_meta, heading
from turnlog.formats.codex.items import CodexState, Meter, usage_of
from turnlog.formats.codex.line import (
    APART,
    QUIET,
    Begun,
    CodexCall,
    CodexOutput,
    CodexTalk,
    CustomOutput,
    Done,
    Reasoning,
    TokenCount,
    decode_line,
)  # fmt: skip
from turnlog.log.entry import Note, Spent, TurnState

_MARKS = ("type", "record_type")
_ENDS: dict[str, TurnState] = {"task_complete": "completed", "turn_complete": "completed", "turn_aborted": "aborted"}


def read(source: Source) -> Reading:
    """See `turnlog.formats`."""
    header = heading(source)
    reading = Reading(header=header, steps=iter(()))
    reading.steps = _Reader(source, reading, header).steps()
    return reading


def grown(source: Source, mark: ResumePoint) -> Reading | None:
    """See `turnlog.formats`."""
    state = state_of(source, mark, CodexState)
    if state is None:
        return None
    header = heading(source)
    reading = Reading(header=replace(header, title=state.title or header.title), steps=iter(()), facts={**state.facts})
    reader = _Reader(source, reading, header)
    reader.go_on(mark, state)
    reading.steps = reader.steps()
    return settled(reading)


class _Reader(Conversation):
    def go_on(self, mark: ResumePoint, state: CodexState) -> None:
        """Only what comes behind a mark."""
        self._start, self._given = mark, mark.steps
        self._keys, self._meter = Keys(state.keys), Meter(state.counted)
        self._model, self._turn, self._begun, self._title = state.model, state.turn, state.begun, state.title
        self._last = state.last

    def _mark(self) -> ResumePoint | None:
        if not self._marked or self._source.path.endswith(".zst"):
            return self._start
        offset, given, last, now, model, turn, begun = self._marked
        facts = small(self._reading.facts)
        state = CodexState(now, last, model, turn, begun, self._title, self._keys.state(), facts)
        return ResumePoint(offset, given, to_builtins(state))

    def steps(self) -> Iterator[Step]:
        """All of it."""
        out = self._out
        take: Any = {
            CodexOutput: self._output, CustomOutput: self._output, CodexCall: self._called, Reasoning: self._thought,
            CodexTalk: self._talk, TokenCount: self._counted, Begun: self._begin, Done: self._done,
        }.get  # fmt: skip
        for offset, line in self._lines():
            self._offset = offset
            if type(line) is dict:
                self._offset = -1  # it may stand in the middle of a damaged line: no mark
                self._step(cast("dict[str, Any]", line), offset)
            else:
                payload = line.payload
                if (known := take(type(payload))) is not None:
                    known(payload, line.timestamp)
            while out:
                self._given += 1
                yield out.pop(0)
        self._reading.mark = self._mark()
        self._answer(None)
        yield from out
        for told in self._unknown.told():
            tell(self._reading.problems, Problem(told, is_news=True))

    def _lines(self) -> Iterator[tuple[int, Any]]:
        """The records of the file, behind those of the file that it continues."""
        start = self._start.offset if self._start is not None else 0
        own = heads(self._source.path, self._reading.problems, decode_line, marks=_MARKS, start=start)
        if self._start is not None:
            yield from own
            return
        base = fields((first_meta(self._source.path) or {}).get("history_base"))
        if base and self._fork is not None and self._fork.source is None:
            told = f"continues {self._fork.session}, which is not beside it: its beginning is missing"
            tell(self._reading.problems, Problem(told))
        elif base and self._fork is not None and self._fork.source is not None:
            end, goes_on = base.get("end_byte_offset"), self._next
            self._next = sys.maxsize  # a mark is a place in the file itself
            before = heads(self._fork.source.path, self._reading.problems, decode_line)
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

    # ── events ────────────────────────────────────────────────────────────────────────────────────

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
            spent = usage_of(fields(about.get("usage")))
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
            raise Back
        dropped = self._turns[-number:]
        del self._turns[-number:]
        if not dropped:
            tell(self._reading.problems, Problem(f"a rollback of {number} turns, but there are none", offset=offset))
            return
        self._last = dropped[0]
        self._out.append(Jump(to=self._last, key=f"rollback at {offset}", why="rewind", at=at))
