"""claw's lines, and its older object files, as entries."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, cast

import msgspec

from turnlog.formats import Forked, Reading, Record, SessionHeader, Source, Step
from turnlog.formats._shared.finding import names_in
from turnlog.formats._shared.foreign import unknown
from turnlog.formats._shared.json import lines
from turnlog.formats._shared.origin import UNKNOWN
from turnlog.formats._shared.patch import besides
from turnlog.formats._shared.problem import UnknownRecords
from turnlog.formats._shared.records import readable
from turnlog.formats._shared.rust import compact, trimmed
from turnlog.formats._shared.tally import Tally
from turnlog.formats._shared.value import EPOCH, counted, fields
from turnlog.formats.seeds.claw.record import (
    ClawRecord,
    ClawReport,
    copy_of,
    of_line,
    of_object,
    records,
    stamp_of,
    stem_of,
    whole_object,
    workspace_of,
)
from turnlog.formats.seeds.claw.writing import AS_TEXT, NAME, UPDATED, input_of, own_record, to_ms
from turnlog.log.block import AnyBlock, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.digest import sha256
from turnlog.log.entry import Compaction, Custom, Message, Note
from turnlog.log.usage import Usage

_LATEST_MS = 253_402_300_799_999
_KINDS = ("message", "compaction", "prompt_history")
_COUNTERS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


def read(source: Source) -> Reading:
    """One session: the last header in the file counts, as for claw, and every line stands for itself."""
    return _Reader(source).reading()


def time_of(ms: Any) -> datetime | None:
    """A time of claw's, if it is one."""
    if isinstance(ms, (int, float)) and not isinstance(ms, bool) and 0 <= ms <= _LATEST_MS:
        return EPOCH + timedelta(milliseconds=int(ms))
    return None


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.path = source.path
        self.name = os.path.basename(source.path)
        self.report = ClawReport()
        self.facts: dict[str, Any] = {}
        self.object = whole_object(self.path, self.report)
        self.has_messages = False

    def reading(self) -> Reading:
        meta = self.meta()
        header = self.header(meta)
        self.created = header.created
        return Reading(header=header, steps=self.steps(), problems=self.report.problems, facts=self.facts)

    def meta(self) -> dict[str, Any]:
        """The last header."""
        if self.object is not None:
            return next(iter(of_object(self.object))).record
        meta: dict[str, Any] | None = None
        is_empty = True
        for line in lines(self.path):
            is_empty = is_empty and not line.data.strip()
            if b"session_meta" in line.data:
                record = of_line(line)[0]
                if record is not None and record.record.get("type") == "session_meta":
                    meta = record.record
        if is_empty:
            self.report.add("an empty file: claw would give it another id each time")
        elif meta is None:
            self.report.add("no header: the session has its id from the name of the file")
        return meta or {}

    def header(self, meta: dict[str, Any]) -> SessionHeader:
        stem = stem_of(self.name)
        inner = meta.get("session_id")
        self.has_id = isinstance(inner, str) and bool(inner)
        id = str(inner) if self.has_id else stem
        origin: dict[str, Any] = {}
        labels: dict[str, str] = {}
        copy = copy_of(self.name)
        if copy is None:
            self.look_at_copies()
            if id != stem:
                self.report.add(f"the id is {id!r:.80}, the file is called {self.name!r:.80}")
                origin["file"] = f"{stem}.jsonl"
        elif self.source.key:
            self.report.add("the session's own file is gone: this is its newest copy")
            copy = None
        if copy is not None:
            labels["copy_of"] = id
            origin["id"] = id
            origin["file"] = self.name
            id = f"{id}.{copy.tag}"
        if os.path.basename(os.path.dirname(os.path.abspath(self.path))) == "sessions":
            origin["flat"] = True
        created = self.times(meta, str(inner) if inner else stem, origin)
        root = meta.get("workspace_root")
        origin |= {"root": True} if isinstance(root, str) else {}
        model = meta.get("model")
        if isinstance(model, str) and model:
            self.facts["model"] = model
        elif "model" in meta:
            origin.setdefault("meta", {})["model"] = model
        fork = fields(meta.get("fork"))
        parent, branch = fork.get("parent_session_id"), fork.get("branch_name")
        if fork:
            origin["fork"] = fork
        named = ("type", "version", "session_id", "created_at_ms", "updated_at_ms", "model", "workspace_root", "fork")
        more = {key: value for key, value in meta.items() if key not in named}
        if more:
            origin["meta"] = {**origin.get("meta", {}), **more}
        if meta and meta.get("version") != 1:
            self.report.add(f"version {meta.get('version')!r:.40}, read as version 1")
            if type(meta.get("version")) is int and abs(meta["version"]) < 1 << 63:
                origin["version"] = meta["version"]
        name = trimmed(branch) if isinstance(branch, str) else ""
        return SessionHeader(
            id=id,
            identity=self.identity(id, stem, root) if copy is None else "",
            workspace=root if isinstance(root, str) and root else workspace_of(self.path),
            created=created,
            labels=labels,
            fork=Forked(parent, name or None) if isinstance(parent, str) else None,
            origin=origin or None,
        )

    def times(self, meta: dict[str, Any], id: str, origin: dict[str, Any]) -> datetime | None:
        created_ms = meta.get("created_at_ms")
        created = time_of(created_ms)
        if created is None and type(created_ms) is int and abs(created_ms) < 1 << 63:
            origin["created_at_ms"] = created_ms
        if created is None:
            started = fields(meta.get("metadata")).get("started_at")
            seconds = int(started) if isinstance(started, str) and started.isascii() and started.isdigit() else None
            stamp = stamp_of(id)
            created = time_of(stamp) if stamp is not None else time_of(seconds * 1000) if seconds else None
        updated = meta.get("updated_at_ms")
        if type(updated) is int and abs(updated) < 1 << 63:
            self.facts[UPDATED] = updated
        if "model" not in meta and isinstance(fields(meta.get("metadata")).get("model"), str):
            self.facts["model"] = meta["metadata"]["model"]
        return created

    def identity(self, id: str, stem: str, root: Any) -> str:
        """What tells it from others: two processes of one millisecond give the same id, `/clear` once changed it."""
        if self.has_id:
            return "@".join([id, *([stem] if stem != id else []), *([root] if isinstance(root, str) else [])])
        first = next((f.record for f in records(self.path, self.object) if f.record.get("type") == "message"), None)
        return f"{id}:{sha256(compact(first)).hexdigest()[:16]}" if first else id

    def look_at_copies(self) -> None:
        """Tell of copies that hold what the session itself no longer has."""
        folder = os.path.dirname(self.path) or "."
        here: set[bytes] = set()
        for name in names_in(folder):
            copy, path = copy_of(name), os.path.join(folder, name)
            if copy is None or copy.original != self.name or os.path.islink(path):
                continue
            here = here or {sha256(line.data.strip()).digest() for line in lines(self.path)}
            texts = (
                line.data.strip()
                for line in readable(lines(path), self.report.problems, path)
                if b"session_meta" not in line.data
            )
            more = sum(bool(text) and sha256(text).digest() not in here for text in texts)
            if more:
                what = f"a copy with {more} record{'s' * (more > 1)} that the session no longer has: import it by name"
                self.report.add(what, where=name)

    def steps(self) -> Iterator[Step]:
        pending: ClawRecord | None = None
        new = UnknownRecords(NAME)
        for record in records(self.path, self.object, self.report):
            kind = record.record.get("type")
            if kind == "session_meta":
                continue
            if kind == "compaction" and not self.has_messages:
                # The last one counts, and the summary that it put in comes right after it.
                pending = record
                continue
            if kind == "message":
                raw = record.record.get("message")
                message = self.message(record, raw)
                is_summary = message is not None and message.role == "system" and not self.has_messages
                self.has_messages = True
                if pending is not None:
                    yield self.compaction(pending, message if is_summary else None)
                    pending = None
                    if is_summary:
                        continue
                yield Record(entry=message) if message is not None else self.unknown(record, "message")
            elif kind == "prompt_history":
                yield self.prompt(record)
            else:
                if kind == "compaction":
                    self.report.add("a compaction after messages: kept, with no effect", record)
                else:
                    new.count(kind if isinstance(kind, str) else "record")
                yield self.unknown(record, kind)
        if pending is not None:
            yield self.compaction(pending, None)
        new.report(self.report.problems)

    def compaction(self, line: ClawRecord, summary: Message | None) -> Record:
        record = line.record
        origin: dict[str, Any] = {"agent": NAME}
        meta: dict[str, Any] = {}
        names = {"count": "count", "removed_message_count": "removed", "summary": "summary"}
        for name, short in names.items():
            value = record.get(name)
            if isinstance(value, str) if name == "summary" else type(value) is int and 0 <= value < 1 << 32:
                meta[short] = value
            else:
                self.report.add(f"a compaction without {name}", line)
        more = {key: value for key, value in record.items() if key not in names and key != "type"}
        if more:
            origin["record"] = more
        entry = Compaction(replacement=[summary] if summary else [], at=self.created, meta=meta, origin=origin)
        return Record(entry=entry)

    def prompt(self, line: ClawRecord) -> Record:
        record = line.record
        text, at = record.get("text"), record.get("timestamp_ms")
        if not isinstance(text, str):
            self.report.add("a prompt without text: kept as it is", line)
            return self.unknown(line, "prompt_history")
        origin: dict[str, Any] = {"agent": NAME, "type": "prompt_history"}
        if not self.has_messages:
            origin["first"] = True
        when = time_of(at)
        more = {key: value for key, value in record.items() if key not in ("type", "text", "timestamp_ms")}
        if when is None or to_ms(when) != at:
            more["timestamp_ms"] = at
        if more:
            origin["record"] = more
        return Record(entry=Note(text=text, at=when or self.created, origin=origin))

    def unknown(self, record: ClawRecord, kind: Any) -> Record:
        name = kind if isinstance(kind, str) else "record"
        origin = {"agent": NAME, **({} if kind in _KINDS else {UNKNOWN: name})}
        return Record(entry=Custom(kind=f"claw.{name[:80]}", data=record.record, at=self.created, origin=origin))

    def message(self, record: ClawRecord, raw: Any) -> Message | None:
        role, blocks = fields(raw).get("role"), fields(raw).get("blocks")
        if role not in ("system", "user", "assistant", "tool") or not isinstance(blocks, list):
            self.report.add("a message without a known role or without blocks: kept as it is", record)
            return None
        blocks_made = [self.block(record, block) for block in cast("list[Any]", blocks)]
        origin: dict[str, Any] = {"agent": NAME}
        if role in ("system", "user") and any(isinstance(block, ToolResult) for block in blocks_made):
            origin["role"], role = role, "tool"
        usage = self.usage(record, raw.get("usage"))
        message = Message(role=role, blocks=blocks_made, usage=usage, at=self.created, origin=origin)
        return _with_extras(message, record.record, raw)

    def usage(self, record: ClawRecord, raw: Any) -> Usage | None:
        if raw is None:
            return None
        counts = [count for name in _COUNTERS if (count := counted(fields(raw).get(name))) is not None]
        if len(counts) < len(_COUNTERS):
            self.report.add("a usage that is none: not counted", record)
            return None
        return Usage(*counts[:3], output_tokens=counts[3])

    def block(self, line: ClawRecord, raw: Any) -> AnyBlock:
        record = fields(raw)

        def text(name: str) -> bool:
            return isinstance(record.get(name), str)

        match record.get("type"):
            case "text" if text("text"):
                return Text(text=record["text"])
            case "thinking" if text("thinking") or text("text"):
                signature = record.get("signature")
                has_one = isinstance(signature, str)
                words = record["thinking"] if text("thinking") else record["text"]
                data = {"signature": signature} if has_one else None
                return Thinking(text=words, provider="anthropic" if has_one else None, data=data)
            case "tool_use" if text("id") and text("name") and "input" in record:
                value = record["input"]
                return ToolCall(id=record["id"], name=record["name"], input=input_of(value) if text("input") else value)
            case "tool_result" if text("tool_use_id") and text("output"):
                return ToolResult(
                    call=record["tool_use_id"],
                    content=record["output"],
                    is_error=record.get("is_error") is True,
                    name=record["tool_name"] if text("tool_name") else None,
                )
            case kind:
                self.report.add(f"a block of the unknown type {kind!r:.80}: kept as it is", line)
                return unknown(NAME, raw)


def _with_extras(message: Message, record: dict[str, Any], raw: dict[str, Any]) -> Message:
    """The message with a note of whatever its own fields would not say when it is written again."""
    plain = own_record(message, Tally())
    origin: dict[str, Any] = dict(message.origin)
    blocks: dict[str, Any] = {}
    for index, (was, now) in enumerate(zip(raw["blocks"], plain["message"]["blocks"], strict=True)):
        if isinstance(message.blocks[index], UnknownBlock):
            continue
        extra = besides(was, now)
        if isinstance(message.blocks[index], Thinking) and "thinking" not in was:
            extra.pop("text", None)
            extra[AS_TEXT] = "text"
        if extra:
            blocks[str(index)] = extra
    inner = besides({key: value for key, value in raw.items() if key != "blocks"}, plain["message"])
    outer = besides({key: value for key, value in record.items() if key != "message"}, plain)
    for name, extra_fields in (("blocks", blocks), ("message", inner), ("record", outer)):
        if extra_fields:
            origin[name] = extra_fields
    return msgspec.structs.replace(message, origin=origin)
