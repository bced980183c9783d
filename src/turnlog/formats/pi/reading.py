"""A session of pi, read in one pass: entries hang on each other by `parentId`, and the last line is where it stands.

The program gives old files new ids in place, so ids only say what hangs on what; content tells entries apart.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from datetime import datetime
from typing import Any, cast

from msgspec import UNSET, DecodeError, Struct
from msgspec.structs import force_setattr, replace

from turnlog.formats import Forked, Jump, Reading, Record, ResumePoint, SessionHeader, Source, Step
from turnlog.formats._shared import growth
from turnlog.formats._shared.key import NONE, Keys, KeyState, bound
from turnlog.formats._shared.origin import UnknownRecords
from turnlog.formats.pi import message as said
from turnlog.formats.pi.message import PiMessageLine, PiToolResult, decode_line, message_of_line, usage_of
from turnlog.interop.copied import copied_in
from turnlog.interop.folder import at_once
from turnlog.interop.problem import report
from turnlog.interop.records import rows, typed_records
from turnlog.interop.value import as_int, fields, moment, text
from turnlog.log.block import AnyBlock, Text, ToolCall, ToolResult
from turnlog.log.entry import Compaction, Custom, Edit, Entry, Message, Note, Spent

_LINKS = ("model_change", "thinking_level_change", "label", "session_info", "session", "usage")
_FAILED = ("error", "aborted")


class PiState(Struct, omit_defaults=True):
    """What is known at a resume point."""

    before: str
    """The id of the entry before it."""
    last: str
    """The key of the node before it."""
    number: int
    """The number of the next line."""
    title: str | None = None
    keys: KeyState = KeyState()
    facts: dict[str, Any] = {}


def read(source: Source, start: ResumePoint | None = None, state: PiState | None = None) -> Reading:
    """See `turnlog.formats`; with a resume point, only what comes behind it."""
    state = state or PiState("", "", 0)
    row = next(rows(source.path, []), None)
    first: dict[str, Any] = row.data if row is not None and row.data.get("type") == "session" else {}
    parent = text(first.get("parentSession")) or text(first.get("branchedFrom")) or ""
    beside = os.path.join(os.path.dirname(source.path), os.path.basename(parent))
    older = next((Source(source.agent, path) for path in (parent, beside) if os.path.isfile(path)), None)
    header = SessionHeader(
        id=text(first.get("id")) or _id_in(source.path),
        workspace=text(first.get("cwd")),
        title=state.title,
        created=moment(first.get("timestamp")),
        fork=Forked(_id_in(parent), source=older) if parent else None,
        copied=copied_in(first),
        origin={"version": first["version"]} if "version" in first else None,
    )
    return _Reader(source, header, start, state).reading


def _id_in(path: str) -> str:
    return os.path.basename(path).removesuffix(".jsonl").rpartition("_")[2]


class _Reader:
    def __init__(self, source: Source, header: SessionHeader, start: ResumePoint | None, state: PiState) -> None:
        self._source = source
        self.reading = Reading(header=header, steps=self._steps(state.number), facts={**state.facts})
        self._keys = Keys(state.keys)
        self._nodes: dict[int, int] = {}
        """The node of each entry of the file, by the hash of the entry's id (there are many). Nodes are numbered from 1
        in the order of the file; an entry that is no node has that of its parent, or 0 if there is none before it."""
        self._offsets = array("q", [-1])
        """The offset of the line of each node, from which its key can be made again; -1 if `_kept` has the key."""
        self._kept: dict[int, str] = {0: ""}
        """The keys of the other nodes."""
        self._links: set[int] = set()
        """The hashes of the ids of entries that are no nodes."""
        self._before = state.before
        self._last, self._last_key = 0, state.last
        if start is not None:
            self._nodes[hash(state.before)] = self._last = 1 if state.last else 0
        if state.last:
            self._offsets.append(-1)
            self._kept[1] = state.last
        self._out: list[Step] = []
        """Steps that are not taken yet."""
        self._unknown = UnknownRecords(source.agent)
        self._points = growth.ResumePoints[PiState](start)

    def _steps(self, first: int) -> Iterator[Step]:
        """What comes of the records, the first of which has that number."""
        out, nodes, points = self._out, self._nodes, self._points
        lines = typed_records(self._source.path, self.reading.problems, decode_line, start=points.start)
        for number, (offset, line) in enumerate(lines, first):
            if type(line) is PiMessageLine:
                id, parent = line.id, line.parent
                if parent is UNSET:
                    parent = self._before
            else:
                id = line.get("id")
                if type(id) is not str or not id:
                    id = f"line {number}"
                parent = line.get("parentId") if "parentId" in line else self._before
            node = nodes.get(hash(parent)) if type(parent) is str else 0
            if node is None and not parent:
                node = 0
            elif node is None:
                points.require(is_there=False)
                report(self.reading.problems, f"hangs on entry {parent!r:.40}, which is missing", offset=offset)
                node = self._last
            if type(line) is PiMessageLine:
                is_next = offset >= points.next_offset and node == self._last and parent == self._before
                if is_next and type(line.message) is not PiToolResult:
                    points.set(offset, 0, PiState(before=self._before, last=self._last_key, number=number))
                    self._keys.begin_tail()
                message = line.message
                nodes[hash(id)] = self._add_node(message_of_line(message), line.timestamp, node, NONE, offset)
                if type(message) is PiToolResult and message.usage:
                    self._add_spending(message.usage, "tool", line.timestamp)
            else:
                nodes[hash(id)] = self._other(cast("dict[str, Any]", line), id, offset, node)
            self._before = id
            if out:
                points.given += len(out)
                yield from out
                out.clear()
        title, facts = self.reading.header.title, growth.small(self.reading.facts)
        self.reading.mark = points.newest(title=title, keys=self._keys.state(), facts=facts)
        self._unknown.report(self.reading.problems)
        live = nodes.get(hash(self._before), 0)
        if live != self._last:
            to = self._key_of(live)
            yield Jump(to=to, key=f"live {to} {self._last_key}")

    def _add_node(self, entry: Any, at: datetime | None, parent: int, names: dict[str, str], offset: int) -> int:
        """Add a node behind its parent. `offset` is that of its line if its key can be made again from that, or -1."""
        out, offsets = self._out, self._offsets
        if parent != self._last:
            out.append(Jump(to=self._key_of(parent)))
        call = _call(entry.blocks) if type(entry) is Message else None
        if call is None:
            key, offset = self._digest_key(entry), -1
        else:
            name = bound(*call)
            key = self._keys.of_name(name)
            if key is not name:
                offset = -1
        force_setattr(entry, "at", at)
        out.append(Record(entry=entry, key=key, names=names))
        if type(entry) is Message and entry.stop in _FAILED and entry.blocks:  # the program leaves such answers out
            names, key, offset = {"entry": key}, f"{key}#left out", -1
            out.append(Record(entry=Edit(entry=0, blocks=None), key=key, names=names))
        self._last, self._last_key = len(offsets), key
        offsets.append(offset)
        if offset < 0:
            self._kept[self._last] = key
        return self._last

    def _digest_key(self, entry: Entry) -> str:
        """The key of a record that names no call: a digest of its content."""
        force_setattr(entry, "id", "-")
        return self._keys.of(entry)

    def _add_beside(self, entry: Any, at: datetime | None) -> None:
        """Add a record that is no node."""
        key = self._digest_key(entry)
        force_setattr(entry, "at", at)
        self._out.append(Record(entry=entry, key=key, names=NONE))

    def _add_spending(self, usage: Any, why: str | None, at: datetime | None, model: str | None = None) -> None:
        """Add what was spent apart from the answers."""
        spent = usage_of(usage)
        if spent is not None:
            self._add_beside(Spent(usage=spent, model=model, why=why), at)

    def _key_of(self, node: int) -> str:
        """The key of a node. Most are never asked for, so it is made from the line once more."""
        if node in self._kept:
            return self._kept[node]
        with open(self._source.path, "rb", opener=at_once) as file:
            file.seek(self._offsets[node])
            data = file.readline()
        try:
            line = decode_line(data)
        except (DecodeError, UnicodeDecodeError, RecursionError):
            line = None
        call = _call(message_of_line(line.message).blocks) if line is not None else None
        if line is None or call is None or self._nodes.get(hash(line.id)) != node:
            raise OSError("the file was replaced while it was read")
        return bound(*call)

    def _other(self, record: dict[str, Any], id: str, offset: int, parent: int) -> int:
        """Add the steps of a line of any other kind. Returns the parent for the entries that hang on it."""
        kind, at = str(record.get("type")), moment(record.get("timestamp"))
        entry, names = self._entry(kind, record, at, offset)
        if entry is None:
            self._links.add(hash(id))
            return 0 if kind == "session" else parent
        node = self._add_node(entry, at, parent, names, -1)
        if kind == "branch_summary":
            self._add_spending(record.get("usage"), "branch summary", at)
        elif isinstance(entry, Message) and entry.role == "tool":
            self._add_spending(fields(record.get("message")).get("usage"), "tool", at)
        return node

    def _entry(
        self, kind: str, record: dict[str, Any], at: datetime | None, offset: int
    ) -> tuple[Entry | None, dict[str, str]]:
        """The node that a line is, and the records that it names. Anything else is added here, and gives no node."""
        if kind == "message":
            raw = fields(record.get("message"))
            if raw.get("role") == "system" and raw.get("content") in ("", []):
                return None, NONE  # the program declares its prompt, by sections, and its tools
            entry = said.message_of(raw)
            if entry is not None:
                return entry, NONE
        if kind == "compaction":
            entry = Compaction(
                replacement=[Message(role="user", blocks=[Text(text=text(record.get("summary")) or "")])],
                tokens_before=as_int(record.get("tokensBefore")),
                usage=usage_of(record.get("usage")),
                meta=record.get("details"),
            )
            return entry, self._keeps(record, offset)
        if kind == "branch_summary":
            summary = text(record.get("summary")) or ""
            about = {key: record.get(key) for key in ("fromId", "details", "summary")}
            return Custom(kind="pi.branch_summary", data=about, blocks=[Text(text=summary)] if summary else []), NONE
        if kind == "custom_message":
            return said.custom(record), NONE
        if kind == "custom":
            return Custom(kind=f"pi.{record.get('customType')}", data=record.get("data")), NONE
        if kind == "context_edit":
            wanted = hash(str(record.get("targetId")))
            self._points.require(wanted in self._nodes)
            if target := self._key_of(self._nodes.get(wanted, 0)):
                instead = record.get("replacement")
                blocks = None if instead is None else said.blocks_of(fields(instead).get("content"))
                return Edit(entry=0, blocks=blocks), {"entry": target}
        if kind in _LINKS:
            self._link(kind, record, at)
        elif kind in ("message", "context_edit"):
            report(self.reading.problems, f"a {kind} that makes no sense: kept as a note", offset=offset)
            self._add_beside(Note(text=f"a {kind} that makes no sense", data=record), at)
        else:
            self._add_beside(self._unknown.note(kind, record, "an entry"), at)
        return None, NONE

    def _link(self, kind: str, record: dict[str, Any], at: datetime | None) -> None:
        facts = self.reading.facts
        if kind in ("model_change", "session") and text(record.get("modelId")):
            facts["model"], facts["provider"] = record["modelId"], record.get("provider")
        if kind in ("thinking_level_change", "session") and text(record.get("thinkingLevel")):
            facts["thinking_level"] = record["thinkingLevel"]
        elif kind == "session_info" and text(record.get("name")):
            self.reading.header = replace(self.reading.header, title=record["name"])
        elif kind == "label" and text(record.get("label")):
            self._add_beside(Note(text=f"label: {record['label']}", data={"target": record.get("targetId")}), at)
        elif kind == "usage":
            self._add_spending(record.get("usage"), text(record.get("kind")), at, text(record.get("model")))

    def _keeps(self, record: dict[str, Any], offset: int) -> dict[str, str]:
        """The first node that a compaction keeps: that of the line it names, or the next one behind it."""
        self._points.require(is_there=False)
        index, wanted, order = record.get("firstKeptEntryIndex"), record.get("firstKeptEntryId"), list(self._nodes)
        if wanted is None and type(index) is int and 0 <= index < len(order):
            start = index
        else:
            start = order.index(hash(wanted)) if isinstance(wanted, str) and hash(wanted) in self._nodes else -1
        if start < 0:
            if wanted is not None and wanted != record.get("id"):
                report(self.reading.problems, "a compaction keeps an entry that is missing", offset=offset)
            return {}
        node = next((self._nodes[id] for id in order[start:] if id not in self._links), 0)
        return {"keep": self._key_of(node)} if node else {}


def _call(blocks: list[AnyBlock]) -> tuple[str, Any, int] | None:
    """What tells a message that names a call from others: the first call, what is said of it, and how much is said."""
    for block in blocks:
        if type(block) is ToolCall and block.id:
            return block.id, block.input, len(blocks) + 1
        if type(block) is ToolResult and block.call:
            return block.call, block.content, 1 if block.is_error else 0
    return None
