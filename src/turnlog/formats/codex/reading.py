"""A rollout of Codex, read in one pass: response items are the conversation, events tell what else happened.

A rollback drops the newest turns, so each turn remembers what it began behind. A file that continues another one
(`history_base`) is read behind the part of that one which it continues. A response is several items, and the count of
tokens that follows closes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import lru_cache
from itertools import takewhile
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple, force_setattr, replace

from turnlog.formats import Jump, Reading, Record, ResumePoint, Source, Step
from turnlog.formats._shared import growth
from turnlog.formats._shared.key import NONE, Keys, KeyState, bound, digest_of
from turnlog.formats._shared.origin import UnknownRecords
from turnlog.formats.codex import rollout
from turnlog.formats.codex.heading import first_meta, heading
from turnlog.formats.codex.usage import Meter, TokenCounts, counts_in
from turnlog.interop.problem import report
from turnlog.interop.records import report_unreadable, typed_records
from turnlog.interop.value import fields, items, moment, text, token_count
from turnlog.log.block import AnyBlock, Text, ToolResult
from turnlog.log.entry import Compaction, Message, Note, Spent, Turn, TurnState
from turnlog.log.usage import Usage

_BARE: dict[str, None] = {"at": None, "turn": None, "usage": None, "model": None}
"""Not part of what tells a message from others."""
_MARKS = ("type", "record_type")
_ENDS: dict[str, TurnState] = {"task_complete": "completed", "turn_complete": "completed", "turn_aborted": "aborted"}


class CodexState(Struct, omit_defaults=True):
    """What is known at a mark."""

    counted: tuple[int, int, int, int, int]
    """`TokenCounts`, in their order."""
    last: str = ""
    model: str | None = None
    turn: str | None = None
    begun: str | None = None
    title: str | None = None
    keys: KeyState = KeyState()
    facts: dict[str, Any] = {}


def read(source: Source, mark: ResumePoint | None = None, state: CodexState | None = None) -> Reading:
    """See `turnlog.formats`; with a mark, only what comes behind it."""
    return _Reader(source, mark, state or CodexState((0, 0, 0, 0, 0))).reading


class _Reader:
    """What was said so far, and what is not complete yet."""

    def __init__(self, source: Source, start: ResumePoint | None, state: CodexState) -> None:
        self._source = source
        header = heading(source)
        header = replace(header, title=state.title or header.title)
        self.reading = Reading(header=header, steps=self._steps(), facts={**state.facts})
        self._keys, self._meter = Keys(state.keys), Meter(TokenCounts(*state.counted))
        self._model, self._turn, self._turn_parent, self._title = state.model, state.turn, state.begun, state.title
        self._answer_blocks: list[AnyBlock] | None = None
        """What the model said since its last response ended."""
        self._answer_at: datetime | None = None
        self._results: list[tuple[ToolResult, datetime | None]] = []
        """What tools answered to it: that may be there before the count of tokens is."""
        self._last = state.last
        """The key of the node before."""
        self._turns: list[str] = []
        """Behind which node each turn of a user began."""
        self._prompts: list[Message] = []
        """What people said, which an early compaction keeps."""
        self._unknown = UnknownRecords(source.agent)
        self._out: list[Step] = []
        """Steps that are not taken yet."""
        self._offset = 0
        self._may_resume = False
        """Whether the record is a line of the file itself: one in a damaged line is no mark."""
        self._points = growth.ResumePoints[CodexState](start)

    def _steps(self) -> Iterator[Step]:
        out = self._out
        handlers: dict[type, Callable[[Any, Any], None]] = {
            rollout.FunctionCall: self._on_function_call, rollout.Reasoning: self._on_reasoning,
            **dict.fromkeys(rollout.OUTPUTS, self._on_output), rollout.MessageItem: self._on_message,
            rollout.TokenCount: self._on_token_count, rollout.TaskStarted: self._on_task_started,
            rollout.TaskComplete: self._on_task_complete,
        }  # fmt: skip
        handler_of, points, pop = handlers.get, self._points, out.pop
        for may_resume, records in self._files():
            self._may_resume = may_resume
            for offset, line in records:
                self._offset = offset
                if type(line) is dict:
                    self._may_resume = False  # it may stand in the middle of a damaged line
                    self._record(fields(line))
                    self._may_resume = may_resume
                else:
                    payload: object = line.payload
                    if (handler := handler_of(type(payload))) is not None:
                        handler(payload, line.timestamp)
                while out:
                    points.given += 1
                    yield pop(0)
        facts, keys = growth.small(self.reading.facts), self._keys.state()
        self.reading.mark = self._points.newest(title=self._title, keys=keys, facts=facts)
        self._answer(None)
        yield from out
        self._unknown.report(self.reading.problems)

    def _files(self) -> Iterator[tuple[bool, Iterator[tuple[int, Any]]]]:
        """The records of the file that it continues, as far as it does, and its own, and which may be marks."""
        path, problems, fork = self._source.path, self.reading.problems, self.reading.header.fork
        base = {} if self._points.is_part else fields((first_meta(path) or {}).get("history_base"))
        if base and fork is not None and fork.source is None:
            report(problems, f"continues {fork.session}, which is not beside it: its beginning is missing")
        elif base and fork is not None and fork.source is not None:
            end, older = base.get("end_byte_offset"), fork.source.path
            before = report_unreadable(typed_records(older, problems, rollout.decode_line), problems, older)
            yield False, takewhile(lambda pair: not isinstance(end, int) or pair[0] < end, before)
        yield (
            not path.endswith(".zst"),
            typed_records(path, problems, rollout.decode_line, marks=_MARKS, start=self._points.start),
        )

    def _record(self, record: dict[str, Any]) -> None:
        """A record of any kind."""
        kind, payload, at = record.get("type"), record.get("payload"), moment(record.get("timestamp"))
        if isinstance(payload, dict):
            about = fields(payload)
            if kind == "response_item":
                self._on_item(rollout.as_typed(about), at)
            elif kind == "event_msg":
                self._event(about, at)
            elif kind == "compacted":
                self._compacted(about, at)
            elif kind == "turn_context":
                self._context(about)
            elif kind == "session_meta":
                if (system := text(fields(about.get("base_instructions")).get("text"))) is not None:
                    self.reading.facts.setdefault("system", system)
            elif kind not in rollout.APART:
                self._note(str(kind), record, at)
        elif isinstance(kind, str):
            self._on_item(rollout.as_typed(record), at)  # the bare items of 2025
        elif "record_type" not in record and "instructions" not in record:
            self._note("none", record, at)

    def _context(self, about: dict[str, Any]) -> None:
        self._model = text(about.get("model")) or self._model
        for key in ("model", "effort", "approval_policy", "sandbox_policy"):
            if about.get(key) is not None:
                self.reading.facts[key] = about[key]

    def _event(self, about: dict[str, Any], at: datetime | None) -> None:
        kind = str(about.get("type"))
        if kind == "token_count":
            self._answer(self._meter.spent(about.get("info")), at)
        elif kind in ("task_started", "turn_started"):
            self._begin_turn(text(about.get("turn_id")), at)
        elif kind in _ENDS:
            self._end_turn(_ENDS[kind], text(about.get("reason")), at)
        elif kind == "thread_rolled_back":
            self._answer(None)
            self._rolled_back(token_count(about.get("num_turns")), at)
        elif kind == "turn.completed":
            spent = counts_in(fields(about.get("usage"))).usage()
            if spent is not None:
                self._add(Spent(id="-", usage=spent, model=self._model), at)
        elif kind == "thread_name_updated":
            self._title = text(about.get("thread_name")) or text(about.get("name")) or self._title
            self.reading.header = replace(self.reading.header, title=self._title or self.reading.header.title)
        elif kind == "thread_goal_updated":
            self.reading.facts["goal"] = about.get("goal")
        elif kind == "patch_apply_end":
            changes = about.get("changes")
            words = f"a patch was applied to {', '.join(sorted(fields(changes))) or 'nothing'}"
            data = {"call": about.get("call_id"), "changes": changes, "success": about.get("success")}
            self._add(Note(id="-", text=words, data=data), at)
        elif kind in ("error", "stream_error", "warning"):
            self._add(Note(id="-", text=text(about.get("message")) or kind, data=about), at)
        elif kind not in rollout.QUIET:
            self._note(kind, about, at)

    def _rolled_back(self, number: int, at: datetime | None) -> None:
        self._points.require(number <= len(self._turns))
        dropped = self._turns[-number:] if number else []
        if dropped:
            del self._turns[-number:]
            self._last = dropped[0]
            self._out.append(Jump(to=self._last, key=f"rollback at {self._offset}", why="rewind", at=at))
        elif number:
            report(self.reading.problems, f"a rollback of {number} turns, but there are none", offset=self._offset)

    def _set_resume_point(self) -> None:
        """Nothing that is open here began before this line."""
        if self._may_resume:
            state = CodexState(astuple(self._meter.now), self._last, self._model, self._turn, self._turn_parent)
            self._points.set(self._offset, len(self._out), state)
            self._keys.begin_tail()

    def _on_function_call(self, item: rollout.FunctionCall, at: datetime | None) -> None:
        self._open_answer(at).append(rollout.tool_call(item))

    def _on_reasoning(self, item: rollout.Reasoning, at: datetime | None) -> None:
        self._open_answer(at).append(rollout.reasoning(item))

    def _on_output(self, item: rollout.FunctionOutput, at: datetime | None) -> None:
        self._add_result(rollout.tool_result(item), at)

    def _on_token_count(self, event: rollout.TokenCount, at: Any) -> None:
        self._answer(self._meter.spent(event.info), at)

    def _on_task_started(self, event: rollout.TaskStarted, at: Any) -> None:
        self._begin_turn(text(event.turn_id), at)

    def _on_task_complete(self, event: rollout.TaskComplete, at: Any) -> None:
        self._end_turn("completed", text(event.reason), at)

    def _on_message(self, item: rollout.MessageItem, at: datetime | None) -> None:
        if item.role == "assistant":
            self._open_answer(at).extend(rollout.answer_blocks(item))
        else:
            self._add_message(rollout.input_message(item), at)

    def _on_item(self, item: rollout.Item, at: datetime | None) -> None:
        """An item of any kind."""
        kind = rollout.kind_of(item)
        if kind == "answer":
            self._open_answer(at).extend(rollout.answer_blocks(item))
        elif isinstance(item, rollout.FunctionOutput):
            self._on_output(item, at)
        elif isinstance(item, rollout.MessageItem):
            self._on_message(item, at)
        elif kind != "ghost_snapshot":
            self._note(kind, item, at)

    def _open_answer(self, at: datetime | None) -> list[AnyBlock]:
        """The blocks of the answer that is not complete, to which more are added."""
        if self._results:
            self._answer(None)
        if self._answer_blocks is None:
            if self._offset >= self._points.next_offset:
                self._set_resume_point()
            self._answer_blocks, self._answer_at = [], at
        return self._answer_blocks

    def _add_result(self, result: ToolResult, at: datetime | None) -> None:
        if self._answer_blocks is not None:
            self._results.append((result, at))
            return
        entry = Message(id="-", role="tool", blocks=[result], at=at, turn=self._turn)
        call = result.call
        self._node(entry, bound(call, result.content, 1 if result.is_error else 0) if call else "")

    def _add_message(self, message: Message, at: datetime | None) -> None:
        if self._answer_blocks is not None:
            self._answer(None)
        if self._turn_parent is None and self._offset >= self._points.next_offset:
            self._set_resume_point()
        if message.role == "user" and message.display is None:
            self._turns.append(self._last if self._turn_parent is None else self._turn_parent)
            self._turn_parent = None
            self._prompts.append(message)
        self._last = self._add(message, at)

    def _answer(self, spent: Usage | None, at: Any = None) -> None:
        """What the model said is complete, and what it cost is known if its count follows."""
        blocks = self._answer_blocks
        if blocks is not None:
            self._answer_blocks = None
            stop, error, call = rollout.ending_of(blocks)
            entry = Message(
                id="-", role="assistant", blocks=blocks, stop=stop, error=error, at=self._answer_at,
                turn=self._turn, usage=spent, model=self._model,
            )  # fmt: skip
            self._node(entry, bound(call.id, call.input, len(blocks) + 1) if call is not None and call.id else "")
            if self._results:
                results, self._results = self._results, []
                for result, when in results:
                    self._add_result(result, when)
        elif spent is not None:
            self._add(Spent(id="-", usage=spent, model=self._model), at)

    def _node(self, entry: Message, name: str) -> None:
        """A message: by the name of a call, or by what it says. It may be read before its count is there."""
        keys = self._keys
        key = self._last = keys.of_name(name) if name else keys.of(replace(entry, **_BARE))
        self._out.append(Record(entry=entry, key=key, names=NONE))

    def _add(self, entry: Any, at: Any) -> str:
        """Any other step; what it says, and neither when nor in which turn, tells it from others."""
        key = self._keys.of(entry)
        force_setattr(entry, "at", moment(at))
        force_setattr(entry, "turn", self._turn)
        self._out.append(Record(entry=entry, key=key, names=NONE))
        return key

    def _compacted(self, about: dict[str, Any], at: datetime | None) -> None:
        self._answer(None)
        history, summary = about.get("replacement_history"), text(about.get("message"))
        if isinstance(history, list):
            replacement = rollout.messages(items(history))
        else:
            self._points.require(is_there=False)
            replacement = [*self._prompts, *([Message(role="user", blocks=[Text(text=summary)])] if summary else [])]
        self._prompts = [message for message in replacement if message.role == "user"]
        native = rollout.native_compaction(items(history), summary or "")
        self._last = self._add(native or Compaction(replacement=list(replacement)), at)

    def _begin_turn(self, turn: str | None, at: Any) -> None:
        if self._answer_blocks is not None:
            self._answer(None)
        if self._offset >= self._points.next_offset:
            self._set_resume_point()
        self._turn_parent, self._turn = self._last, turn
        self._add_turn_mark("begin", None, at)

    def _end_turn(self, state: TurnState, error: str | None, at: Any) -> None:
        if self._answer_blocks is not None:
            self._answer(None)
        self._add_turn_mark(state, error, at)
        self._turn = self._turn_parent = None

    def _add_turn_mark(self, state: TurnState, error: str | None, at: Any) -> None:
        if self._turn is not None:
            entry = Turn(id="-", state=state, error=error, at=moment(at), turn=self._turn)
            self._out.append(Record(entry=entry, key=self._keys.of_digest(_turn_digest(state, error)), names=NONE))

    def _note(self, kind: str, data: Any, at: datetime | None) -> None:
        self._add(self._unknown.note(kind, data), at)


@lru_cache(maxsize=16)
def _turn_digest(state: TurnState, error: str | None) -> str:
    return digest_of(Turn(id="-", state=state, error=error))
