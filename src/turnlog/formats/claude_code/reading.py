"""A transcript of Claude Code, read in one pass.

Records hang on each other by `parentUuid`, in the order in which they were written. Three things are not as the file
has them. One API message is several records, one per block: they are one message here. Results of parallel calls hang
beside each other, and the conversation goes on behind only one of them: here they stand in a row behind their message.
And some links of the chain are no part of the conversation: whoever hangs on one hangs on what that one hangs on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from msgspec import UNSET, Struct
from msgspec.structs import replace

from turnlog.formats import Jump, Problem, Reading, Record, ResumePoint, Source, Step
from turnlog.formats._shared import growth
from turnlog.formats._shared.key import NONE
from turnlog.formats._shared.origin import UnknownRecords
from turnlog.formats.claude_code.blocks import answer, block, cleared, newer_usage, parts_of, result, stopped, usage_of
from turnlog.formats.claude_code.chain import Chain, ClaudeAnswer, ClaudeLine, decode_line, in_order, key_of, line_of
from turnlog.formats.claude_code.heading import CHAIN, cleared_calls, heading, take_facts
from turnlog.interop.records import typed_records
from turnlog.interop.value import as_int, branches_in, fields, moment, text
from turnlog.log.block import AnyBlock, ToolResult
from turnlog.log.entry import Compaction, Custom, Edit, Message, Note
from turnlog.log.identity import content_key


class ClaudeState(Struct, omit_defaults=True):
    """What is known at a resume point."""

    before: str
    """The record before it."""
    last: str
    """The key of the node before it."""
    titles: dict[str, str] = {}
    facts: dict[str, Any] = {}
    branches: list[str] = []


def read(source: Source, start: ResumePoint | None = None, state: ClaudeState | None = None) -> Reading:
    """See `turnlog.formats`; with a resume point, only what comes behind it."""
    return _Reader(source, start, state or ClaudeState("", "")).reading


class _Arriving(Struct):
    """An API message that is still arriving, and the results that came in between."""

    key: str
    id: str
    first: ClaudeLine
    parent: str
    content: list[Any]
    uuids: list[str]
    usage: dict[str, Any]
    results: list[tuple[str, Record]]
    """Each behind the id of the line that it is from."""
    stop: Any = None


class _Reader:
    def __init__(self, source: Source, start: ResumePoint | None, state: ClaudeState) -> None:
        self._source = source
        self.reading = Reading(header=heading(source), steps=self._steps(), facts={**state.facts})
        self._is_side = self.reading.header.hidden
        self._chain = Chain()
        self._open: _Arriving | None = None
        self._before, self._last = state.before, state.last
        """The record of the chain before, and the key of the node before."""
        if start is not None:
            self._chain.hang(state.before, "", state.last, said=True)
        self._missing = 0
        self._calls: dict[int, str] = {}
        """Which node has the result of each call (its hash: there are many), for what is cleared later."""
        self._several_results: dict[str, list[AnyBlock]] = {}
        """The results of the messages that have more than one: an edit of one of them has to repeat the others."""
        self._titles = dict(state.titles)
        self._branches = dict.fromkeys(state.branches or self.reading.header.git_branches)
        self._unknown = UnknownRecords(source.agent)
        self._boundary: dict[str, Any] = {}
        self._out: list[Step] = []
        """Steps that are not taken yet."""
        self._points = growth.ResumePoints[ClaudeState](start)

    def _may_resume_here(self, line: ClaudeLine, offset: int) -> None:
        """Set a resume point if this line continues the newest record with a new prompt or answer: nothing is open."""
        if line.parent != self._before or not self._before or self._boundary:
            return
        is_new = self._open is None or line.message.id != self._open.id
        if is_new if type(line) is ClaudeAnswer else line.is_prompt:
            self._end_answer()
            if self._last and self._chain.node_of(self._before) == self._last and not self._source.key:
                self._points.set(offset, len(self._out), ClaudeState(before=self._before, last=self._last))

    def _steps(self) -> Iterator[Step]:
        out, points, problems = self._out, self._points, self.reading.problems
        records = typed_records(self._source.path, problems, decode_line, start=points.start)
        if not points.is_part and not self._source.key:
            records = in_order(records, problems)
        for offset, record in records:
            line = record if type(record) is not dict else self._untyped(cast("dict[str, Any]", record), offset)
            if line is not None and not self._is_known(line.uuid, line.parent, line.is_side):
                if offset >= points.next_offset:
                    self._may_resume_here(line, offset)
                if type(line.branch) is str:
                    self._branches[line.branch] = None
                self._on_message(line)
            while out:
                points.given += 1
                yield out.pop(0)
        facts, branches = growth.small(self.reading.facts), list(self._branches)
        self.reading.mark = points.newest(titles=self._titles, facts=facts, branches=branches)
        self._end_answer()
        yield from out
        self._unknown.report(problems)
        if self._missing:
            problem = f"{self._missing} records hang on others that are missing: they follow what stands before them"
            problems.append(Problem(problem))
        live = self._chain.live()
        points.require(live.is_certain or self._is_side)
        if live.key and live.key != self._last:
            yield Jump(to=live.key, key=f"live {live.key} {self._last}")
        title = self._titles.get("custom") or self._titles.get("ai") or self._titles.get("summary")
        branches = branches_in(*self._branches)
        self.reading.header = replace(self.reading.header, title=title, git_branches=branches)

    def _is_known(self, uuid: str, parent: Any, is_side: Any) -> bool:
        """Whether it was there before, or belongs to a subagent that an early version kept in its parent's file."""
        if uuid in self._chain:
            return True
        if self._source.key:
            return uuid != self._source.key and parent not in self._chain
        return is_side is True and not self._is_side

    def _on_message(self, line: ClaudeLine) -> None:
        """A message of people, tools or a model."""
        parent = self._parent(line.uuid, line.parent, line.logical)
        if type(line) is ClaudeAnswer:
            self._assistant(line, parent)
        elif line.is_summary:
            self._end_answer()
            self._compacted(line, parent)
        else:
            self._user(line, parent)

    def _parent(self, uuid: str, given: Any, logical: Any) -> str:
        """The record that the next record of the chain hangs on."""
        parent = text(logical if given is UNSET else given)
        if parent is None or parent not in self._chain:
            self._points.require(is_there=False)
            if parent is not None:
                self._missing += bool(self._before)
            parent = "" if parent is None and given is not UNSET else self._before
        self._before = uuid
        return parent

    def _untyped(self, record: dict[str, Any], offset: int) -> ClaudeLine | None:
        """The line of a message that was decoded whole; a record of any other kind is read here, and gives None."""
        kind, uuid = record.get("type"), record.get("uuid")
        if kind not in CHAIN or type(uuid) is not str:
            kind = str(kind)
            if not take_facts(kind, record, self.reading.facts, self._titles):
                note = self._unknown.note(kind, record)
                # With its content: a fork copies the conversation, and has other records at the same place.
                self._out.append(Record(entry=note, key=f"at {offset} {content_key(note)}"))
            return None
        if kind in ("user", "assistant"):
            return line_of(record)
        given = record.get("parentUuid", UNSET)
        if self._is_known(uuid, given, record.get("isSidechain")):
            return None
        parent = self._parent(uuid, given, record.get("logicalParentUuid"))
        if kind == "system":
            self._end_answer()
            self._system(record, uuid, parent)
        elif kind == "attachment":
            self._end_answer()
            data, key = record.get("attachment"), key_of(uuid, record.get("forkedFrom"))
            kind, at = f"claude-code.{fields(data).get('type')}", moment(record.get("timestamp"))
            entry = Custom(kind=kind, data=data, at=at)
            self._node(key, parent, Record(entry=entry, key=key), uuid)
        else:
            self._skip_record(uuid, parent)
        return None

    def _skip_record(self, uuid: str, parent: str) -> None:
        self._chain.hang(uuid, parent, self._chain.node_of(parent))

    def _node(
        self, key: str, parent: str, record: Record, uuid: str = "", *, said: bool = False, live: bool = True
    ) -> None:
        before = self._chain.node_of(parent)
        if before != self._last and (self._last or before):
            self._out.append(Jump(to=before))
        self._out.append(record)
        self._last = key
        if uuid:
            self._chain.hang(uuid, parent, key, said=said, live=live)

    def _assistant(self, line: ClaudeAnswer, parent: str) -> None:
        arriving, uuid, message = self._open, line.uuid, line.message
        id = text(message.id) or uuid
        if arriving is None or arriving.id != id or self._is_other_branch(arriving, parent):
            self._end_answer()
            arriving = self._open = _Arriving(key_of(uuid, line.fork), id, line, parent, [], [], {}, [])
        arriving.content += parts_of(message.content)
        arriving.uuids.append(uuid)
        usage = message.usage
        if usage != arriving.usage and isinstance(usage, dict):
            arriving.usage = newer_usage(arriving.usage, fields(usage))
        if message.stop_reason:
            arriving.stop = message.stop_reason
        self._chain.hang(uuid, parent, arriving.key, said=True, live=line.is_live)

    def _is_other_branch(self, arriving: _Arriving, parent: str) -> bool:
        """Whether this is the same answer on another branch."""
        if parent in arriving.uuids:
            return False
        return self._chain.node_of(parent) not in {record.key for _, record in arriving.results}

    def _end_answer(self) -> None:
        """Add the API message that was arriving, which is complete, and then the results that belong to it."""
        arriving, self._open = self._open, None
        if arriving is None:
            return
        first, message = arriving.first, arriving.first.message
        error = first.error or (True if first.is_error else None)
        stop, failure = stopped(arriving.stop, message.error or None, message.stop_details)
        entry = Message(
            id="-",
            role="assistant",
            blocks=[answer(raw) for raw in arriving.content],
            model=None if message.model == "<synthetic>" else text(message.model),
            request=arriving.id if message.id is not UNSET else text(first.request),
            usage=usage_of(arriving.usage) if arriving.usage else None,
            stop="error" if error else stop,
            error=({"type": "api_error"} if error is True else error) if error else failure,
            at=moment(first.timestamp),
        )
        self._node(arriving.key, arriving.parent, Record(entry=entry, key=arriving.key, names=NONE))
        for _, record in arriving.results:
            self._out.append(record)
            self._last = record.key or ""
        for uuid, _ in arriving.results[:-1]:  # the conversation goes on behind all of them, whichever it hangs on
            self._chain.redirect(uuid, self._last)
        if first.is_error:
            # What the program says in the model's place when a request failed is not for the model.
            key = f"{arriving.key}#error"
            self._out.append(Record(entry=Edit(entry=0, blocks=None), key=key, names={"entry": arriving.key}))
            self._last = key
            for uuid in arriving.uuids:
                self._chain.redirect(uuid, key)

    def _user(self, line: ClaudeLine, parent: str) -> None:
        """A line of a user's: a prompt, results of tools, or results and behind them a prompt."""
        parts, key = parts_of(line.message.content), key_of(line.uuid, line.fork)
        results = [part for part in parts if part.get("type") == "tool_result"]
        if results:
            if len(results) == len(parts):
                self._results(line, parent, key, results)
                return
            self._results(line, parent, f"{key}#results", results)
            parts = [part for part in parts if part.get("type") != "tool_result"]
            parent = line.uuid
        self._end_answer()
        display = False if line.is_meta or line.is_hidden else None
        blocks = [block(part) for part in parts]
        entry = Message(id="-", role="user", blocks=blocks, at=moment(line.timestamp), display=display)
        record = Record(entry=entry, key=key, names=NONE, turn=text(line.prompt))
        self._node(key, parent, record, line.uuid, said=True, live=line.is_live)

    def _results(self, line: ClaudeLine, parent: str, key: str, results: list[dict[str, Any]]) -> None:
        """Results of tools: they wait for the end of the API message with their calls if that is still arriving."""
        display = False if line.is_meta or line.is_hidden else None
        blocks: list[AnyBlock] = [result(part, line.details) for part in results]
        entry = Message(id="-", role="tool", blocks=blocks, at=moment(line.timestamp), display=display)
        record = Record(entry=entry, key=key, names=NONE)
        if len(results) > 1:
            self._several_results[key] = blocks
        for part in results:
            self._calls[hash(str(part.get("tool_use_id") or ""))] = key
        arriving = self._open
        if arriving is not None and self._answers(arriving, results, parent):
            arriving.results.append((line.uuid, record))
            self._chain.hang(line.uuid, parent, key, said=True, live=line.is_live)
        else:
            self._end_answer()
            self._node(key, parent, record, line.uuid, said=True, live=line.is_live)

    def _answers(self, owner: _Arriving, results: list[dict[str, Any]], parent: str) -> bool:
        if parent in owner.uuids:
            return True
        calls = {str(block.get("id")) for block in owner.content if block.get("type") == "tool_use"}
        return any(part.get("tool_use_id") in calls for part in results)

    def _compacted(self, line: ClaudeLine, parent: str) -> None:
        boundary, self._boundary = self._boundary, {}
        about = fields(boundary.get("compactMetadata"))
        summary = Message(role="user", blocks=[block(part) for part in parts_of(line.message.content)])
        entry = Compaction(
            replacement=[summary],
            trigger=text(about.get("trigger")),
            tokens_before=as_int(about.get("preTokens")),
            at=moment(line.timestamp),
        )
        if boundary and parent == boundary.get("uuid"):
            parent = text(boundary.get("logicalParentUuid")) or parent
        key = key_of(line.uuid, line.fork)
        kept = self._chain.node_of(str(fields(about.get("preservedSegment")).get("headUuid")))
        compaction = Record(entry=entry, key=key, names={"keep": kept} if kept else {})
        self._node(key, parent, compaction, line.uuid, said=True, live=line.is_live)

    def _system(self, record: dict[str, Any], uuid: str, parent: str) -> None:
        kind = str(record.get("subtype"))
        if kind == "compact_boundary":
            self._boundary = record
            self._skip_record(uuid, text(record.get("logicalParentUuid")) or parent)
            return
        self._skip_record(uuid, parent)
        if kind == "microcompact_boundary":
            self._clear_results(record, uuid)
            return
        words = text(record.get("content")) or kind.replace("_", " ")
        about = {key: value for key, value in record.items() if key not in ("parentUuid", "uuid", "timestamp")}
        self._out.append(Record(entry=Note(text=words, data=about, at=moment(record.get("timestamp"))), key=uuid))

    def _clear_results(self, record: dict[str, Any], uuid: str) -> None:
        """Edit the messages of results that no longer go to the model."""
        calls_of: dict[str, list[str]] = {}
        for call in cleared_calls(record):
            key = self._calls.get(hash(call))
            self._points.require(key is not None)
            if key is not None:
                calls_of.setdefault(key, []).append(call)
        for key, calls in calls_of.items():
            blocks = cleared(self._several_results.get(key) or [ToolResult(call=calls[0])], calls)
            if key in self._several_results:
                self._several_results[key] = blocks
            entry = Edit(entry=0, blocks=blocks, at=moment(record.get("timestamp")))
            name = f"{uuid}#{calls[0]}"
            self._out.append(Record(entry=entry, key=name, names={"entry": key}))
            self._last = name
            self._chain.hang(uuid, uuid, name)
