"""A session of pi, read in one pass: entries hang on each other by `parentId`, and the last line is where it stands.

The program gives old files new ids in place, so ids only say what hangs on what; content tells entries apart.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from datetime import datetime
from typing import Any, cast

from msgspec import UNSET, Struct, to_builtins
from msgspec.structs import force_setattr, replace

from turnlog.formats import Forked, Jump, Reading, Record, ResumePoint, SessionHeader, Source, Step
from turnlog.formats._shared import growth
from turnlog.formats._shared.copied import copied_in
from turnlog.formats._shared.key import NONE, Keys, bound
from turnlog.formats._shared.problem import UnknownRecords, report
from turnlog.formats._shared.records import heads, rows
from turnlog.formats._shared.value import fields, moment, text, whole
from turnlog.formats.pi.message import PiTalk, PiTold, blocks_of, decode_line, message_of, said, usage_of
from turnlog.log.block import AnyBlock, Text, ToolCall, ToolResult
from turnlog.log.entry import Compaction, Custom, Edit, Entry, Message, Note, Spent

_LINKS = ("model_change", "thinking_level_change", "label", "session_info", "session", "usage")
_FAILED = ("error", "aborted")


class PiState(Struct, omit_defaults=True):
    """What is known at a mark."""

    before: str
    """The entry before it, and its node."""
    last: str
    number: int
    title: str | None = None
    keys: dict[str, int] = {}
    facts: dict[str, Any] = {}


def read(source: Source, mark: ResumePoint | None = None, state: PiState | None = None) -> Reading:
    """See `turnlog.formats`; with a mark, only what comes behind it."""
    state = state or PiState("", "", 0)
    row = next(rows(source.path, []), None)
    first: dict[str, Any] = row.data if row is not None and row.data.get("type") == "session" else {}
    parent = text(first.get("parentSession")) or text(first.get("branchedFrom"))
    stem = os.path.basename(source.path).removesuffix(".jsonl")
    header = SessionHeader(
        id=text(first.get("id")) or stem.rpartition("_")[2],
        workspace=text(first.get("cwd")),
        title=state.title,
        created=moment(first.get("timestamp")),
        fork=_fork(parent, source) if parent else None,
        copied=copied_in(first),
        origin={"version": first["version"]} if "version" in first else None,
    )
    reading = Reading(header=header, steps=iter(()), facts={**state.facts})
    reading.steps = _Reader(source, reading, mark, state).steps()
    return reading


def _fork(parent: str, source: Source) -> Forked:
    name = os.path.basename(parent)
    beside = os.path.join(os.path.dirname(source.path), name)
    older = next((path for path in (parent, beside) if os.path.isfile(path)), None)
    return Forked(
        name.removesuffix(".jsonl").rpartition("_")[2],
        source=Source(source.agent, older) if older is not None else None,
    )


class _Reader:
    def __init__(self, source: Source, reading: Reading, start: ResumePoint | None, state: PiState) -> None:
        self._source = source
        self._reading = reading
        self._keys = Keys(state.keys)
        self._places: dict[int, int] = {}
        """The node that each entry of the file stands for, by the hash of its id there (there are many); 0 for none."""
        self._offsets = array("q", [-1])
        """Where the line of each node is, from which its key can be made again; -1 where the key is kept."""
        self._kept: dict[int, str] = {0: ""}
        self._links: set[int] = set()
        """Entries (hashes of their ids) that are no node themselves."""
        self._before = state.before
        self._last = 0
        if start is not None:
            self._places[hash(state.before)] = self._node(state.last) if state.last else 0
        self._out: list[Step] = []
        """Steps that are not taken yet."""
        self._unknown = UnknownRecords(source.agent)
        self._start = start
        self._given = start.steps if start is not None else 0
        self._next = 0  # from where on the next mark may be
        self._first = state.number
        self._marked: tuple[int, int, str, int, int] | None = None
        """The newest place that may be a mark, how many steps come before it, the entry before it, its node, and
        how many records there are before it."""

    def _mark(self) -> ResumePoint | None:
        if self._marked is None:
            return self._start
        offset, given, before, last, number = self._marked
        title, facts = self._reading.header.title, growth.small(self._reading.facts)
        return ResumePoint(
            offset, given, to_builtins(PiState(before, self._key(last), number, title, self._keys.state(), facts))
        )

    def steps(self) -> Iterator[Step]:
        """All of it."""
        out, places = self._out, self._places
        start = self._start.offset if self._start is not None else 0
        lines = heads(self._source.path, self._reading.problems, decode_line, start=start)
        for number, (offset, line) in enumerate(lines, self._first):
            if type(line) is PiTalk:
                id, parent = line.id, line.parent
                if parent is UNSET:
                    parent = self._before
            else:
                id = line.get("id")
                if type(id) is not str or not id:
                    id = f"line {number}"
                parent = line.get("parentId") if "parentId" in line else self._before
            node = places.get(hash(parent)) if type(parent) is str else 0
            if node is None and not parent:
                node = 0
            elif node is None:
                if self._start is not None:
                    raise growth.NeedsFullRead
                problem = f"hangs on entry {parent!r:.40}, which is missing"
                report(self._reading.problems, problem, offset=offset)
                node = self._last
            if type(line) is PiTalk:
                if offset >= self._next and self._is_begun(line, parent, node):
                    self._next = offset + growth.APART
                    self._marked = (offset, self._given, self._before, node, number)
                    self._keys.mark()
                places[hash(id)] = self._talk(line, offset, node)
            else:
                places[hash(id)] = self._other(cast("dict[str, Any]", line), id, offset, node)
            self._before = id
            if out:
                self._given += len(out)
                yield from out
                out.clear()
        self._reading.mark = self._mark()
        self._unknown.report(self._reading.problems)
        live = places.get(hash(self._before), 0)
        if live != self._last:
            to = self._key(live)
            yield Jump(to=to, key=f"live {to} {self._key(self._last)}")

    def _is_begun(self, line: PiTalk, parent: Any, place: int) -> bool:
        """Whether a prompt or an answer begins here, and goes on behind what stands before it."""
        return type(line.message) is not PiTold and place == self._last and parent == self._before

    def _other(self, record: dict[str, Any], id: str, offset: int, place: int) -> int:
        node = self._entry(record, offset, place)
        if not node:
            self._links.add(hash(id))
            return 0 if record.get("type") == "session" else place
        return node

    def _talk(self, line: PiTalk, offset: int, place: int) -> int:
        """A message of a usual kind."""
        entry = said(line.message, line.timestamp)
        call = _call(entry.blocks)
        if place != self._last:
            self._out.append(Jump(to=self._key(place)))
        name = bound(*call) if call is not None else ""
        key = self._keys.single(name) if name else self._keys.of(replace(entry, at=None))
        self._out.append(Record(entry=entry, key=key, names=NONE))
        if type(line.message) is PiTold and line.message.usage:
            self._out += self._spent(line.message.usage, "tool", line.timestamp)
        if entry.stop in _FAILED and entry.blocks:
            return self._left_out(key)
        if key is not name:
            return self._node(key)
        self._offsets.append(offset)
        self._last = len(self._offsets) - 1
        return self._last

    def _node(self, key: str) -> int:
        """A node whose key is kept."""
        self._offsets.append(-1)
        self._last = len(self._offsets) - 1
        self._kept[self._last] = key
        return self._last

    def _key(self, node: int) -> str:
        """The key of a node: most are never asked for, so it is made from its line once more."""
        if node in self._kept:
            return self._kept[node]
        with open(self._source.path, "rb") as file:
            file.seek(self._offsets[node])
            blocks = said(decode_line(file.readline()).message, None).blocks
        return bound(*(_call(blocks) or ("", None, 0)))

    def _left_out(self, key: str) -> int:
        """The program leaves answers out that failed or were cut short."""
        name = f"{key}#left out"
        self._out.append(Record(entry=Edit(entry=0, blocks=None), key=name, names={"entry": key}))
        return self._node(name)

    def _entry(self, record: dict[str, Any], offset: int, place: int) -> int:
        """The steps of one line of any kind; returns the node it is, or 0."""
        out = self._out
        kind, at = str(record.get("type")), moment(record.get("timestamp"))
        names: dict[str, str] = {}
        entry: Entry | None = None
        if kind == "message":
            raw = fields(record.get("message"))
            if raw.get("role") == "system" and raw.get("content") in ("", []):
                return 0  # the program declares its prompt, by sections, and its tools
            entry = message_of(raw)
        elif kind == "compaction":
            entry, names = self._compaction(record), self._keeps(record, offset)
        elif kind == "branch_summary":
            summary = text(record.get("summary")) or ""
            about = {key: record.get(key) for key in ("fromId", "details", "summary")}
            entry = Custom(kind="pi.branch_summary", data=about, blocks=[Text(text=summary)] if summary else [])
        elif kind == "custom_message":
            about = {key: record.get(key) for key in ("details", "display")}
            entry = Custom(kind=f"pi.{record.get('customType')}", data=about, blocks=blocks_of(record.get("content")))
        elif kind == "custom":
            entry = Custom(kind=f"pi.{record.get('customType')}", data=record.get("data"))
        elif kind == "context_edit":
            wanted = hash(str(record.get("targetId")))
            if self._start is not None and wanted not in self._places:
                raise growth.NeedsFullRead
            target = self._key(self._places.get(wanted, 0))
            if target:
                instead = record.get("replacement")
                entry = Edit(entry=0, blocks=None if instead is None else blocks_of(fields(instead).get("content")))
                names = {"entry": target}
        elif kind in _LINKS:
            out += self._link(kind, record, at)
            return 0
        else:
            out.append(self._record(self._unknown.note(str(kind), record, "an entry"), at))
            return 0
        if entry is None:
            report(self._reading.problems, f"a {kind} that makes no sense: kept as a note", offset=offset)
            out.append(self._record(Note(text=f"a {kind} that makes no sense", data=record), at))
            return 0
        if place != self._last:
            out.append(Jump(to=self._key(place)))
        step = self._record(entry, at, names)
        out.append(step)
        key = step.key or ""
        if kind == "branch_summary" or (isinstance(entry, Message) and entry.role == "tool"):
            about, why = (record, "branch summary") if kind != "message" else (fields(record.get("message")), "tool")
            out += self._spent(about.get("usage"), why, at)
        if isinstance(entry, Message) and entry.stop in _FAILED and entry.blocks:
            return self._left_out(key)
        return self._node(key)

    def _record(self, entry: Any, at: datetime | None, names: dict[str, str] = NONE) -> Record:
        if entry.id != "-":
            force_setattr(entry, "id", "-")
        call = _call(entry.blocks) if type(entry) is Message else None
        key = self._keys.single(bound(*call)) if call is not None else self._keys.of(entry)
        force_setattr(entry, "at", at)
        return Record(entry=entry, key=key, names=names)

    def _link(self, kind: str, record: dict[str, Any], at: datetime | None) -> Iterator[Step]:
        facts = self._reading.facts
        if kind in ("model_change", "session") and text(record.get("modelId")):
            facts["model"], facts["provider"] = record["modelId"], record.get("provider")
        if kind in ("thinking_level_change", "session") and text(record.get("thinkingLevel")):
            facts["thinking_level"] = record["thinkingLevel"]
        elif kind == "session_info" and text(record.get("name")):
            self._reading.header = replace(self._reading.header, title=record["name"])
        elif kind == "label" and text(record.get("label")):
            yield self._record(Note(text=f"label: {record['label']}", data={"target": record.get("targetId")}), at)
        elif kind == "usage":
            yield from self._spent(record.get("usage"), text(record.get("kind")), at, text(record.get("model")))

    def _spent(self, usage: Any, why: str | None, at: datetime | None, model: str | None = None) -> list[Record]:
        """What was spent beside the answers."""
        spent = usage_of(fields(usage))
        return [] if spent is None else [self._record(Spent(usage=spent, model=model, why=why), at)]

    def _compaction(self, record: dict[str, Any]) -> Compaction:
        return Compaction(
            replacement=[Message(role="user", blocks=[Text(text=text(record.get("summary")) or "")])],
            tokens_before=whole(record.get("tokensBefore")),
            usage=usage_of(fields(record.get("usage"))),
            meta=record.get("details"),
        )

    def _keeps(self, record: dict[str, Any], offset: int) -> dict[str, str]:
        """The first entry that stays: the node at that line, or the next one behind it."""
        if self._start is not None:
            raise growth.NeedsFullRead
        index = record.get("firstKeptEntryIndex")
        wanted = record.get("firstKeptEntryId")
        order = list(self._places)
        if wanted is None and type(index) is int and 0 <= index < len(order):
            start = index
        else:
            start = order.index(hash(wanted)) if isinstance(wanted, str) and hash(wanted) in self._places else -1
        if start < 0:
            if wanted is not None and wanted != record.get("id"):
                report(self._reading.problems, "a compaction keeps an entry that is missing", offset=offset)
            return {}
        node = next((self._places[id] for id in order[start:] if id not in self._links), 0)
        return {"keep": self._key(node)} if node else {}


def _call(blocks: list[AnyBlock]) -> tuple[str, Any, int] | None:
    """What tells a message that names a call from others: the first call, what is said of it, and how much is said."""
    for block in blocks:
        if type(block) is ToolCall and block.id:
            return block.id, block.input, len(blocks) + 1
        if type(block) is ToolResult and block.call:
            return block.call, block.content, 1 if block.is_error else 0
    return None
