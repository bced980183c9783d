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
from turnlog.formats.claude_code.blocks import answer, block, cleared, larger, parts_of, result, stopped, usage_of
from turnlog.formats.claude_code.chain import Chain, ClaudeAnswer, ClaudeLine, decode_line, in_order, key_of, line_of
from turnlog.formats.claude_code.heading import CHAIN, cleared_calls, heading, take_facts
from turnlog.interop.records import typed_records
from turnlog.interop.value import as_int, branches_in, fields, moment, text
from turnlog.log.block import AnyBlock, ToolResult
from turnlog.log.entry import Compaction, Custom, Edit, Message, Note
from turnlog.log.identity import content_key


class ClaudeState(Struct, omit_defaults=True):
    """What is known at a mark."""

    before: str
    """The record before it, and its node."""
    last: str
    titles: dict[str, str] = {}
    facts: dict[str, Any] = {}
    branches: list[str] = []


def read(source: Source, mark: ResumePoint | None = None, state: ClaudeState | None = None) -> Reading:
    """See `turnlog.formats`; with a mark, only what comes behind it."""
    return _Reader(source, mark, state or ClaudeState("", "")).reading


class _Arriving(Struct):
    """An API message that is still arriving, and the results that came in between."""

    key: str
    id: str
    first: ClaudeLine
    parent: str
    content: list[Any]
    uuids: list[str]
    usage: dict[str, Any]
    results: list[tuple[str, str, Message]]
    """Each with the record it is from, and its key."""
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

    def _may_resume(self, line: ClaudeLine, offset: int) -> None:
        """What goes on behind the record before it, as a new prompt or a new answer, closes all that was open."""
        if line.parent != self._before or not self._before or self._boundary:
            return
        is_new = self._open is None or line.message.id != self._open.id
        if is_new if type(line) is ClaudeAnswer else line.is_asked:
            self._close()
            if self._last and self._chain.place(self._before) == self._last and not self._source.key:
                self._points.set(offset, len(self._out), ClaudeState(before=self._before, last=self._last))

    def _steps(self) -> Iterator[Step]:
        out, points, problems = self._out, self._points, self.reading.problems
        records = typed_records(self._source.path, problems, decode_line, start=points.start)
        if not points.is_part and not self._source.key:
            records = in_order(records, problems)
        for offset, record in records:
            line = record if type(record) is not dict else self._chained(cast("dict[str, Any]", record), offset)
            if line is not None and not self._is_known(line.uuid, line.parent, line.is_side):
                if offset >= points.next_offset:
                    self._may_resume(line, offset)
                if type(line.branch) is str:
                    self._branches[line.branch] = None
                self._said(line)
            while out:
                points.given += 1
                yield out.pop(0)
        facts, branches = growth.small(self.reading.facts), list(self._branches)
        self.reading.mark = points.newest(titles=self._titles, facts=facts, branches=branches)
        self._close()
        yield from out
        self._unknown.report(problems)
        if self._missing:
            problem = f"{self._missing} records hang on others that are missing: they follow what stands before them"
            problems.append(Problem(problem))
        live, is_certain = self._chain.live()
        points.require(is_certain or self._is_side)
        if live and live != self._last:
            yield Jump(to=live, key=f"live {live} {self._last}")
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

    def _said(self, line: ClaudeLine) -> None:
        """What people, tools or a model said."""
        parent = self._parent(line.uuid, line.parent, line.logical)
        if type(line) is ClaudeAnswer:
            self._assistant(line, parent)
        elif line.is_summary:
            self._close()
            self._compacted(line, parent)
        else:
            self._user(line, parent)

    def _parent(self, uuid: str, given: Any, logical: Any) -> str:
        """What the next record of the chain hangs on."""
        parent = text(logical if given is UNSET else given)
        if parent is None or parent not in self._chain:
            self._points.require(is_there=False)
            if parent is not None:
                self._missing += bool(self._before)
            parent = "" if parent is None and given is not UNSET else self._before
        self._before = uuid
        return parent

    def _chained(self, record: dict[str, Any], offset: int) -> ClaudeLine | None:
        """A record that was decoded whole; what people, tools or a model said is given back."""
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
            self._close()
            self._system(record, uuid, parent)
        elif kind == "attachment":
            self._close()
            data, key = record.get("attachment"), key_of(uuid, record.get("forkedFrom"))
            kind, at = f"claude-code.{fields(data).get('type')}", moment(record.get("timestamp"))
            entry = Custom(kind=kind, data=data, at=at)
            self._node(key, parent, Record(entry=entry, key=key), uuid)
        else:
            self._alias(uuid, parent)
        return None

    def _alias(self, uuid: str, parent: str) -> None:
        self._chain.hang(uuid, parent, self._chain.place(parent))

    def _node(
        self, key: str, parent: str, record: Record, uuid: str = "", *, said: bool = False, live: bool = True
    ) -> None:
        before = self._chain.place(parent)
        if before != self._last and (self._last or before):
            self._out.append(Jump(to=before))
        self._out.append(record)
        self._last = key
        if uuid:
            self._chain.hang(uuid, parent, key, said=said, live=live)

    def _assistant(self, line: ClaudeAnswer, parent: str) -> None:
        arriving, uuid, message = self._open, line.uuid, line.message
        id = text(message.id) or uuid
        if arriving is None or arriving.id != id or self._is_apart(arriving, parent):
            self._close()
            arriving = self._open = _Arriving(key_of(uuid, line.fork), id, line, parent, [], [], {}, [])
        arriving.content += parts_of(message.content)
        arriving.uuids.append(uuid)
        usage = message.usage
        if usage != arriving.usage and isinstance(usage, dict):
            arriving.usage = larger(arriving.usage, fields(usage))
        if message.stop_reason:
            arriving.stop = message.stop_reason
        self._chain.hang(uuid, parent, arriving.key, said=True, live=line.is_live)

    def _is_apart(self, arriving: _Arriving, parent: str) -> bool:
        """Whether this is the same answer on another branch."""
        return parent not in arriving.uuids and self._chain.place(parent) not in {key for _, key, _ in arriving.results}

    def _close(self) -> None:
        """The API message is complete: it, and then the results that belong to it."""
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
            model=None if message.model == "<synthetic>" else message.model,
            request=arriving.id if message.id is not UNSET else text(first.request),
            usage=usage_of(arriving.usage) if arriving.usage else None,
            stop="error" if error else stop,
            error=({"type": "api_error"} if error is True else error) if error else failure,
            at=moment(first.timestamp),
        )
        self._node(arriving.key, arriving.parent, Record(entry=entry, key=arriving.key, names=NONE))
        for _, key, results in arriving.results:
            self._out.append(Record(entry=results, key=key, names=NONE))
            self._last = key
        for uuid, _, _ in arriving.results[:-1]:  # the conversation goes on behind all of them, whichever it hangs on
            self._chain.redirect(uuid, self._last)
        if first.is_error:
            # What the program says in the model's place when a request failed is not for the model.
            key = f"{arriving.key}#error"
            self._out.append(Record(entry=Edit(entry=0, blocks=None), key=key, names={"entry": arriving.key}))
            self._last = key
            for uuid in arriving.uuids:
                self._chain.redirect(uuid, key)

    def _user(self, line: ClaudeLine, parent: str) -> None:
        uuid, parts = line.uuid, parts_of(line.message.content)
        results = [part for part in parts if part.get("type") == "tool_result"]
        if results:
            parts = [part for part in parts if part.get("type") != "tool_result"] if len(parts) > len(results) else []
        at, key, live = moment(line.timestamp), key_of(uuid, line.fork), line.is_live
        display = False if line.is_meta or line.is_hidden else None
        if results:
            name = f"{key}#results" if parts else key
            blocks: list[AnyBlock] = [result(part, line.details) for part in results]
            results_entry = Message(id="-", role="tool", blocks=blocks, at=at, display=display)
            if len(results) > 1:
                self._several_results[name] = blocks
            for part in results:
                self._calls[hash(str(part.get("tool_use_id") or ""))] = name
            owner = self._open
            if owner is not None and self._answers(owner, results, parent):
                owner.results.append((uuid, name, results_entry))
                self._chain.hang(uuid, parent, name, said=True, live=live)
                if not parts:
                    return
                self._close()
            else:
                self._close()
                self._node(name, parent, Record(entry=results_entry, key=name, names=NONE), uuid, said=True, live=live)
            if parts:
                parent = uuid
        else:
            self._close()
        if parts or not results:
            blocks = [block(part) for part in parts]
            entry = Message(id="-", role="user", blocks=blocks, at=at, display=display)
            record = Record(entry=entry, key=key, names=NONE, turn=text(line.prompt))
            self._node(key, parent, record, uuid, said=True, live=live)

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
        kept = self._chain.place(str(fields(about.get("preservedSegment")).get("headUuid")))
        compaction = Record(entry=entry, key=key, names={"keep": kept} if kept else {})
        self._node(key, parent, compaction, line.uuid, said=True, live=line.is_live)

    def _system(self, record: dict[str, Any], uuid: str, parent: str) -> None:
        kind = str(record.get("subtype"))
        if kind == "compact_boundary":
            self._boundary = record
            self._alias(uuid, text(record.get("logicalParentUuid")) or parent)
            return
        self._alias(uuid, parent)
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
