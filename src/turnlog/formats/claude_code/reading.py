"""A transcript of Claude Code, read in one pass.

Records hang on each other by `parentUuid`, in the order in which they were written. Three things are not as the file
has them. One API message is several records, one per block: they are one message here. Results of parallel calls hang
beside each other, and the conversation goes on behind only one of them: here they stand in a row behind their message.
And some links of the chain are no part of the conversation: whoever hangs on one hangs on what that one hangs on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from msgspec import UNSET, Struct, to_builtins
from msgspec.structs import replace

from turnlog.formats import Jump, Problem, Reading, Record, ResumePoint, Source, Step
from turnlog.formats._shared import growth
from turnlog.formats._shared.key import NONE, content_key
from turnlog.formats._shared.problem import UnknownRecords
from turnlog.formats._shared.records import heads
from turnlog.formats._shared.value import branches_in, fields, items, moment, text, whole
from turnlog.formats.claude_code.blocks import CLEARED, answer, block, larger, result, stopped, usage_of
from turnlog.formats.claude_code.chain import Chain, in_order
from turnlog.formats.claude_code.heading import CHAIN, heading, take_facts
from turnlog.formats.claude_code.line import (
    Arriving,
    ClaudeAnswer,
    ClaudeLine,
    decode_line,
    ending,
    is_live,
    key_of,
    line_of,
)
from turnlog.log.block import AnyBlock, ToolResult
from turnlog.log.entry import Compaction, Custom, Edit, Message, Note


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
    state = state or ClaudeState("", "")
    reading = Reading(header=heading(source), steps=iter(()), facts={**state.facts})
    reading.steps = _Reader(source, reading, mark, state).steps()
    return reading


class _Reader:
    def __init__(self, source: Source, reading: Reading, start: ResumePoint | None, state: ClaudeState) -> None:
        self._source = source
        self._reading = reading
        self._is_side = reading.header.hidden
        self._chain = Chain()
        self._open: Arriving | None = None
        self._before, self._last = state.before, state.last
        """The record of the chain before, and the key of the node before."""
        if start is not None:
            self._chain.hang(state.before, "", state.last, said=True)
        self._missing = 0
        self._calls: dict[int, str] = {}
        """Which node has the result of each call (its hash: there are many), for what is cleared later."""
        self._titles = dict(state.titles)
        self._branches = dict.fromkeys(state.branches or reading.header.git_branches)
        self._unknown = UnknownRecords(source.agent)
        self._boundary: dict[str, Any] = {}
        self._out: list[Step] = []
        """Steps that are not taken yet."""
        self._start = start
        self._given = start.steps if start is not None else 0
        self._next = 0  # from where on the next mark may be
        self._marked: tuple[int, int, str, str] | None = None
        """The newest place that may be a mark, how many steps come before it, the record before it, and its node."""

    def _mark(self) -> ResumePoint | None:
        if self._marked is None or self._source.key:
            return self._start
        offset, given, before, last = self._marked
        facts = growth.small(self._reading.facts)
        state = ClaudeState(before, last, self._titles, facts, list(self._branches))
        return ResumePoint(offset, given, to_builtins(state))

    def _may_mark(self, line: ClaudeLine, offset: int) -> None:
        """What goes on behind the record before it, as a new prompt or a new answer, closes all that was open."""
        if line.parent != self._before or not self._before or self._boundary:
            return
        if type(line) is ClaudeAnswer:
            is_new = self._open is None or line.message.id != self._open.id
        else:
            content = line.message.content
            is_new = isinstance(content, str) or not any(item.get("type") == "tool_result" for item in items(content))
        if is_new:
            self._close()
            if self._last and self._chain.place(self._before) == self._last:
                self._next = offset + growth.APART
                self._marked = (offset, self._given + len(self._out), self._before, self._last)

    def steps(self) -> Iterator[Step]:
        """All of it."""
        out = self._out
        start = self._start.offset if self._start is not None else 0
        records = heads(self._source.path, self._reading.problems, decode_line, start=start)
        if self._start is None and not self._source.key:
            records = in_order(records, self._reading.problems)
        for offset, record in records:
            line = record if type(record) is not dict else self._chained(cast("dict[str, Any]", record), offset)
            if line is not None and not self._is_known(line.uuid, line.parent, line.is_side):
                if offset >= self._next:
                    self._may_mark(line, offset)
                if type(line.branch) is str:
                    self._branches[line.branch] = None
                self._said(line)
            while out:
                self._given += 1
                yield out.pop(0)
        self._reading.mark = self._mark()
        self._close()
        yield from out
        self._unknown.report(self._reading.problems)
        if self._missing:
            problem = f"{self._missing} records hang on others that are missing: they follow what stands before them"
            self._reading.problems.append(Problem(problem))
        live, is_certain = self._chain.live()
        if self._start is not None and not (is_certain or self._is_side):
            raise growth.NeedsFullRead
        if live and live != self._last:
            yield Jump(to=live, key=f"live {live} {self._last}")
        title = self._titles.get("custom") or self._titles.get("ai") or self._titles.get("summary")
        self._reading.header = replace(
            self._reading.header, title=title or self._reading.header.title, git_branches=branches_in(*self._branches)
        )

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
            if self._start is not None:
                raise growth.NeedsFullRead
            if parent is not None:
                self._missing += bool(self._before)
            parent = "" if parent is None and given is not UNSET else self._before
        self._before = uuid
        return parent

    def _chained(self, record: dict[str, Any], offset: int) -> ClaudeLine | None:
        """A record that was decoded whole; what people, tools or a model said is given back."""
        kind, uuid = record.get("type"), record.get("uuid")
        if kind not in CHAIN or type(uuid) is not str:
            self._other(record, offset)
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
            entry = Custom(
                kind=f"claude-code.{fields(data).get('type')}", data=data, at=moment(record.get("timestamp"))
            )
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
        content = message.content
        if arriving is None or arriving.id != id or self._is_apart(arriving, parent):
            self._close()
            arriving = self._open = Arriving(key_of(uuid, line.fork), id, line, parent, [], [], {}, [])
        arriving.content += [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
        arriving.uuids.append(uuid)
        usage = message.usage
        if usage != arriving.usage and isinstance(usage, dict):
            arriving.usage = larger(arriving.usage, fields(usage))
        if message.stop_reason:
            arriving.stop = ending(message)
        self._chain.hang(uuid, parent, arriving.key, said=True, live=is_live(line))

    def _is_apart(self, arriving: Arriving, parent: str) -> bool:
        """Whether this is the same answer on another branch."""
        return parent not in arriving.uuids and self._chain.place(parent) not in {key for _, key, _ in arriving.results}

    def _close(self) -> None:
        """The API message is complete: it, and then the results that belong to it."""
        arriving, self._open = self._open, None
        if arriving is None:
            return
        first, message = arriving.first, arriving.first.message
        error = first.error or (True if first.is_error else None)
        reason = arriving.stop.get("stop_reason") if arriving.stop else message.stop_reason
        stop, failure = stopped(reason, message.error or None, message.stop_details)
        entry = Message(
            id="-",
            role="assistant",
            blocks=[answer(raw) for raw in arriving.content],
            model=None if message.model is UNSET or message.model == "<synthetic>" else message.model,
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
        content, uuid = line.message.content, line.uuid
        results: list[dict[str, Any]] = []
        if isinstance(content, str):
            parts = [{"type": "text", "text": content}]
        else:
            parts = items(content)
            results = [part for part in parts if part.get("type") == "tool_result"]
            parts = [part for part in parts if part.get("type") != "tool_result"] if len(parts) > len(results) else []
        at, key, live = moment(line.timestamp), key_of(uuid, line.fork), is_live(line)
        display = False if line.is_meta or line.is_hidden else None
        if results:
            name = f"{key}#results" if parts else key
            blocks: list[AnyBlock] = [result(part, line.details) for part in results]
            results_entry = Message(id="-", role="tool", blocks=blocks, at=at, display=display)
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

    def _answers(self, owner: Arriving, results: list[dict[str, Any]], parent: str) -> bool:
        if parent in owner.uuids:
            return True
        calls = {str(block.get("id")) for block in owner.content if block.get("type") == "tool_use"}
        return any(part.get("tool_use_id") in calls for part in results)

    def _compacted(self, line: ClaudeLine, parent: str) -> None:
        content, uuid = line.message.content, line.uuid
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
        boundary, self._boundary = self._boundary, {}
        about = fields(boundary.get("compactMetadata"))
        summary = Message(role="user", blocks=[block(part) for part in parts])
        entry = Compaction(
            replacement=[summary],
            trigger=text(about.get("trigger")),
            tokens_before=whole(about.get("preTokens")),
            at=moment(line.timestamp),
        )
        if boundary and parent == boundary.get("uuid"):
            parent = text(boundary.get("logicalParentUuid")) or parent
        key = key_of(uuid, line.fork)
        kept = self._chain.place(str(fields(about.get("preservedSegment")).get("headUuid")))
        compaction = Record(entry=entry, key=key, names={"keep": kept} if kept else {})
        self._node(key, parent, compaction, uuid, said=True, live=is_live(line))

    def _system(self, record: dict[str, Any], uuid: str, parent: str) -> None:
        kind = str(record.get("subtype"))
        if kind == "compact_boundary":
            self._boundary = record
            self._alias(uuid, text(record.get("logicalParentUuid")) or parent)
            return
        self._alias(uuid, parent)
        if kind == "microcompact_boundary":
            self._cleared(record, uuid)
            return
        words = text(record.get("content")) or kind.replace("_", " ")
        about = {key: value for key, value in record.items() if key not in ("parentUuid", "uuid", "timestamp")}
        self._out.append(Record(entry=Note(text=words, data=about, at=moment(record.get("timestamp"))), key=uuid))

    def _cleared(self, record: dict[str, Any], uuid: str) -> None:
        """Old results no longer go to the model."""
        about = fields(record.get("microcompactMetadata"))
        names = about.get("compactedToolIds")
        for call in cast("list[Any]", names) if isinstance(names, list) else []:
            key = self._calls.get(hash(str(call)))
            if key is None and self._start is not None:
                raise growth.NeedsFullRead
            if key is None:
                continue
            blocks: list[AnyBlock] = [ToolResult(call=str(call), content=CLEARED)]
            entry = Edit(entry=0, blocks=blocks, at=moment(record.get("timestamp")))
            name = f"{uuid}#{call}"
            self._out.append(Record(entry=entry, key=name, names={"entry": key}))
            self._last = name
            self._chain.hang(uuid, uuid, name)

    def _other(self, record: dict[str, Any], offset: int) -> None:
        kind = str(record.get("type"))
        if not take_facts(kind, record, self._reading.facts, self._titles):
            note = self._unknown.note(kind, record)
            # With its content: a fork copies the conversation, and has other records at the same place.
            self._out.append(Record(entry=note, key=f"at {offset} {content_key(note)}"))
