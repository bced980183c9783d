"""A rollout of Codex, read in one pass: response items are the conversation, events tell what else happened.

What one response said is several items; the count of tokens that follows closes it. A rollback drops the newest turns,
so each turn remembers what it began behind. A file that continues another one (`history_base`) is read behind the part
of that one which it continues.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, cast

from msgspec.structs import force_setattr, replace

from turnlog.formats import Header, Move, Problem, Reading, Record, Source, Step
from turnlog.formats._key import Keys
from turnlog.formats._records import Row, count, fields, items, moment, rows, tell, text
from turnlog.formats.codex.heading import first_meta, heading
from turnlog.formats.codex.items import ANSWERS, OUTPUTS, Meter, answered, result, said, usage_of
from turnlog.log.block import Text
from turnlog.log.entry import Compaction, Entry, Message, Note, Spent, Turn

_QUIET = frozenset((
    "user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content", "agent_message_delta",
    "agent_reasoning_section_break", "context_compacted", "mcp_tool_call_end", "mcp_tool_call_begin", "web_search_end",
    "web_search_begin", "image_generation_end", "exec_command_begin", "exec_command_end", "patch_apply_begin",
    "entered_review_mode", "exited_review_mode", "sub_agent_activity", "thread_settings_applied", "item_completed",
    "item_started", "guardian_assessment", "view_image_tool_call", "dynamic_tool_call_request",
    "dynamic_tool_call_response", "undo_completed", "undo_started", "collab_agent_spawn_end", "collab_waiting_end",
    "collab_close_end", "collab_agent_interaction_end", "codex/event/raw_item", "turn_diff", "background_event",
))  # fmt: skip
"""Events that repeat what response items say, or that only the screen needs."""
_APART = (
    "token_usage_record", "world_state", "inter_agent_communication", "inter_agent_communication_metadata",
    "security_risk_score",
)  # fmt: skip
_ENDS = {"task_complete": "completed", "turn_complete": "completed", "turn_aborted": "aborted"}


def read(source: Source) -> Reading:
    """See `turnlog.formats`."""
    header = heading(source)
    reading = Reading(header=header, steps=iter(()))
    reading.steps = _Reader(source, reading, header).steps()
    return reading


class _Reader:
    def __init__(self, source: Source, reading: Reading, header: Header) -> None:
        self._source = source
        self._reading = reading
        self._fork = header.fork
        self._keys = Keys()
        self._meter = Meter()
        self._model: str | None = None
        self._turn: str | None = None
        self._output: list[dict[str, Any]] = []
        self._output_at: datetime | None = None
        self._results: list[tuple[Message, datetime | None]] = []
        """What tools answered to it: that may be there before the count of tokens is."""
        self._last = ""
        """The key of the node before."""
        self._turns: list[str] = []
        """Behind which node each turn of a user began."""
        self._begun: str | None = None
        self._asked: list[Message] = []
        """What people said, which an early compaction keeps."""
        self._unknown: dict[str, int] = {}
        self._out: list[Step] = []
        """Steps that are not taken yet."""

    def steps(self) -> Iterator[Step]:
        """All of it."""
        out = self._out
        for row in self._rows():
            self._step(row)
            if out:
                yield from out
                out.clear()
        self._answer(None)
        yield from out
        for kind, number in self._unknown.items():
            told = f"{number} record{'s' * (number != 1)} of the unknown type {kind!r:.60}: kept as notes"
            tell(self._reading.problems, Problem(told))

    def _rows(self) -> Iterator[Row]:
        """The records of the file, behind those of the file that it continues."""
        base = fields((first_meta(self._source.path) or {}).get("history_base"))
        end = base.get("end_byte_offset")
        if base and self._fork is not None:
            if self._fork.source is None:
                told = f"continues {self._fork.session}, which is not beside it: its beginning is missing"
                tell(self._reading.problems, Problem(told))
            else:
                for row in rows(self._fork.source.path, self._reading.problems):
                    if isinstance(end, int) and row.offset >= end:
                        break
                    yield row
        yield from rows(self._source.path, self._reading.problems, marks=("type", "record_type"))

    def _step(self, row: Row) -> None:
        record = row.data
        kind, payload = record.get("type"), record.get("payload")
        if type(payload) is dict:
            about = cast("dict[str, Any]", payload)
            if kind == "event_msg" and about.get("type") in _QUIET:
                return
            at = moment(record.get("timestamp"))
            if kind == "response_item":
                self._item(about, at)
            elif kind == "event_msg":
                self._event(about, at, row)
            elif kind == "compacted":
                self._compacted(about, at)
            elif kind == "turn_context":
                self._context(about)
            elif kind == "session_meta":
                self._meta(about)
            elif kind not in _APART:
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

    # ── the conversation ──────────────────────────────────────────────────────────────────────────

    def _item(self, item: dict[str, Any], at: datetime | None) -> None:
        kind = item.get("type")
        if kind in ANSWERS or (kind == "message" and item.get("role") == "assistant"):
            if self._results:
                self._answer(None)
            if not self._output:
                self._output_at = at
            self._output.append(item)
        elif kind == "message":
            self._answer(None)
            made = said(item)
            if made.role == "user" and made.display is None:
                self._turns.append(self._last if self._begun is None else self._begun)
                self._begun = None
                self._asked.append(made)
            self._out.append(self._node(made, at))
        elif kind in OUTPUTS and self._output:
            self._results.append((result(item), at))
        elif kind in OUTPUTS:
            self._out.append(self._node(result(item), at))
        elif kind != "ghost_snapshot":
            self._note(str(kind), item, at)

    def _answer(self, info: dict[str, Any] | None, at: datetime | None = None) -> None:
        """What the model said is complete, and what it cost is known if its count follows."""
        spent = self._meter.spent(info) if info is not None else None
        if self._output:
            output, self._output = self._output, []
            made = answered(output)
            self._out.append(self._node(made, self._output_at))
            # Not part of what tells it from others: it may be read before its count is there.
            force_setattr(made, "usage", spent)
            force_setattr(made, "model", self._model)
            for told, when in self._results:
                self._out.append(self._node(told, when))
            self._results.clear()
        elif spent is not None:
            self._out.append(self._mark(Spent(id="-", usage=spent, model=self._model), at))

    def _node(self, entry: Entry, at: datetime | None) -> Record:
        record = self._mark(entry, at)
        self._last = record.key or ""
        return record

    def _mark(self, entry: Any, at: datetime | None) -> Record:
        key = self._keys.of(entry)
        force_setattr(entry, "at", at)
        force_setattr(entry, "turn", self._turn)
        return Record(entry=entry, key=key)

    def _compacted(self, about: dict[str, Any], at: datetime | None) -> None:
        self._answer(None)
        history = about.get("replacement_history")
        summary = text(about.get("message"))
        replacement: list[Message] = []
        if isinstance(history, list):
            replacement = _messages(items(history))
        else:
            replacement = [*self._asked, *([Message(role="user", blocks=[Text(text=summary)])] if summary else [])]
        self._asked = [message for message in replacement if message.role == "user"]
        self._out.append(self._node(Compaction(replacement=list(replacement)), at))

    # ── events ────────────────────────────────────────────────────────────────────────────────────

    def _event(self, about: dict[str, Any], at: datetime | None, row: Row) -> None:
        kind = str(about.get("type"))
        if kind == "token_count":
            self._answer(fields(about.get("info")), at)
        elif kind in ("task_started", "turn_started"):
            self._answer(None)
            self._begun = self._last
            self._turn = text(about.get("turn_id"))
            if self._turn is not None:
                self._out.append(self._mark(Turn(id="-", state="begin"), at))
        elif kind in _ENDS:
            self._answer(None)
            if self._turn is not None:
                self._out.append(self._mark(Turn(id="-", state=_ENDS[kind], error=text(about.get("reason"))), at))
            self._turn = self._begun = None
        elif kind == "thread_rolled_back":
            self._answer(None)
            self._rolled_back(count(about.get("num_turns")), at, row)
        elif kind == "turn.completed":
            spent = usage_of(fields(about.get("usage")))
            if spent is not None:
                self._out.append(self._mark(Spent(id="-", usage=spent, model=self._model), at))
        elif kind == "thread_name_updated":
            name = text(about.get("thread_name")) or text(about.get("name"))
            self._reading.header = replace(self._reading.header, title=name or self._reading.header.title)
        elif kind == "thread_goal_updated":
            self._reading.facts["goal"] = about.get("goal")
        elif kind == "patch_apply_end":
            paths = sorted(fields(about.get("changes")))
            data = {"call": about.get("call_id"), "changes": about.get("changes"), "success": about.get("success")}
            self._out.append(
                self._mark(Note(id="-", text=f"a patch was applied to {', '.join(paths) or 'nothing'}", data=data), at)
            )
        elif kind in ("error", "stream_error", "warning"):
            self._out.append(self._mark(Note(id="-", text=text(about.get("message")) or kind, data=about), at))
        elif kind not in _QUIET:
            self._note(kind, about, at)

    def _rolled_back(self, number: int, at: datetime | None, row: Row) -> None:
        if not number:
            return
        dropped = self._turns[-number:]
        del self._turns[-number:]
        if not dropped:
            tell(
                self._reading.problems, Problem(f"a rollback of {number} turns, but there are none", offset=row.offset)
            )
            return
        self._last = dropped[0]
        self._out.append(Move(to=self._last, key=f"rollback at {row.offset}", why="rewind", at=at))

    def _note(self, kind: str, data: dict[str, Any], at: datetime | None) -> None:
        self._unknown[kind] = self._unknown.get(kind, 0) + 1
        self._out.append(self._mark(Note(id="-", text=f"a record of the type {kind}", data=data), at))


def _messages(history: list[dict[str, Any]]) -> list[Message]:
    """Response items as messages: those in a row that the model said are one."""
    found: list[Message] = []
    output: list[dict[str, Any]] = []
    for item in [*history, {}]:
        kind = item.get("type")
        if kind in ANSWERS or (kind == "message" and item.get("role") == "assistant"):
            output.append(item)
            continue
        if output:
            found.append(answered(output))
            output = []
        if kind == "message":
            found.append(said(item))
        elif kind in OUTPUTS:
            found.append(result(item))
    return found
