"""claw's lines, and its older object files, as entries."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, cast

from msgspec.structs import replace

from turnlog.formats import Forked, Problem, Reading, Record, SessionHeader, Source, Step
from turnlog.formats._shared.blocks import unknown
from turnlog.formats._shared.origin import UNKNOWN, UnknownRecords
from turnlog.formats._shared.tally import Tally
from turnlog.formats.seeds.claw import record as files
from turnlog.formats.seeds.claw.message import COUNTERS, EARLY, NAME, UPDATED, input_of, plain_record
from turnlog.formats.seeds.claw.record import ClawRecord, copy_of, of_line, report
from turnlog.interop.folder import names_in
from turnlog.interop.jsonline import lines
from turnlog.interop.patch import deep_patch
from turnlog.interop.records import report_unreadable
from turnlog.interop.rust import compact, trimmed
from turnlog.interop.value import as_counter, as_int64, fields, from_ms, mistyped, text, without_none
from turnlog.log.block import AnyBlock, Text, Thinking, ToolCall, ToolResult
from turnlog.log.digest import sha256
from turnlog.log.draft import to_ms
from turnlog.log.entry import Compaction, Custom, Message, Note
from turnlog.log.usage import Usage

_KINDS = ("message", "compaction", "prompt_history")
_HEADER: dict[str, type] = {
    "type": str, "version": int, "session_id": str, "created_at_ms": int, "updated_at_ms": int, "workspace_root": str,
    "fork": dict, "model": str,
}  # fmt: skip


def read(source: Source) -> Reading:
    """One session: the last header in the file counts, as for claw, and every line stands for itself."""
    return _Reader(source).reading()


def _began(meta: dict[str, Any], id: str) -> datetime | None:
    """When a session began whose header does not say so in today's words: by its id, or by an early header."""
    stamp, started = files.stamp_of(id), fields(meta.get("metadata")).get("started_at")
    if stamp is not None:
        return from_ms(stamp)
    seconds = int(started) if isinstance(started, str) and re.fullmatch("[0-9]{1,99}", started) else 0
    return from_ms(seconds * 1000) if seconds else None


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.path = source.path
        self.name = os.path.basename(source.path)
        self.problems: list[Problem] = []
        self.facts: dict[str, Any] = {}
        self.object = files.whole_object(self.path, self.problems)
        self.has_messages = False

    def reading(self) -> Reading:
        header = self.header(self.meta())
        self.created = header.created
        return Reading(header=header, steps=self.steps(), problems=self.problems, facts=self.facts)

    def meta(self) -> dict[str, Any]:
        """The last header."""
        if self.object is not None:
            return next(iter(files.of_object(self.object))).record
        meta: dict[str, Any] | None = None
        for line in lines(self.path):
            record = of_line(line) if b"session_meta" in line.data else None
            if record is not None and record.record.get("type") == "session_meta":
                meta = record.record
        if meta is None:
            is_empty = not any(line.data.strip() for line in lines(self.path))
            what = "an empty file: claw would give it another id each time"
            report(self.problems, what if is_empty else "no header: the session has its id from the name of the file")
        return meta or {}

    def header(self, meta: dict[str, Any]) -> SessionHeader:
        copy = copy_of(self.name)
        stem = re.sub(r"\.jsonl?\Z", "", copy.original if copy is not None else self.name)
        inner, root, fork = text(meta.get("session_id")), text(meta.get("workspace_root")), fields(meta.get("fork"))
        self.has_id, id = inner is not None, inner or stem
        origin: dict[str, Any] = {}
        labels: dict[str, str] = {}
        if copy is None:
            self.look_at_copies()
            if id != stem:
                report(self.problems, f"the id is {id!r:.80}, the file is called {self.name!r:.80}")
                origin["file"] = f"{stem}.jsonl"
        elif self.source.key:
            report(self.problems, "the session's own file is gone: this is its newest copy")
            copy = None
        else:
            labels["copy_of"] = id
            origin |= {"id": id, "file": self.name}
            id = f"{id}.{copy.tag}"
        model, old = meta.get("model"), fields(meta.get("metadata")).get("model")
        created = from_ms(meta.get("created_at_ms"))
        origin |= self.header_origin(meta)
        for what in mistyped(meta, _HEADER):
            report(self.problems, what)
        if meta and meta.get("version") != 1:
            report(self.problems, f"version {meta.get('version')!r:.40}, read as version 1")
        named = text(model) or (old if "model" not in meta and isinstance(old, str) else None)
        self.facts |= {UPDATED: as_int64(meta.get("updated_at_ms")), "model": named} if meta else {}
        parent, name = fork.get("parent_session_id"), trimmed(text(fork.get("branch_name")) or "")
        return SessionHeader(
            id=id,
            identity=self.identity(id, stem, meta.get("workspace_root")) if copy is None else "",
            workspace=root or files.workspace_of(self.path),
            created=created or _began(meta, inner or stem),
            labels=labels,
            fork=Forked(parent, name or None) if isinstance(parent, str) else None,
            origin=origin or None,
        )

    def header_origin(self, meta: dict[str, Any]) -> dict[str, Any]:
        """What the writer needs of a header; what is not as it should be is left where it was."""
        created, version = meta.get("created_at_ms"), meta.get("version")
        odd = {key: value for key, value in meta.items() if not value or type(value) is not _HEADER.get(key)}
        kept = {
            "flat": os.path.basename(os.path.dirname(os.path.abspath(self.path))) == "sessions" or None,
            "created_at_ms": as_int64(created) if from_ms(created) is None else None,
            "root": bool(text(meta.get("workspace_root"))) or None, "fork": fields(meta.get("fork")) or None,
            "meta": odd or None, "version": as_int64(version) if version != 1 else None,
        }  # fmt: skip
        return without_none(kept)

    def identity(self, id: str, stem: str, root: Any) -> str:
        """What tells it from others: two processes of one millisecond give the same id, `/clear` once changed it."""
        if self.has_id:
            return "@".join([id, *([stem] if stem != id else []), *([root] if isinstance(root, str) else [])])
        every = (one.record for one in files.records(self.path, self.object))
        first = next((record for record in every if record.get("type") == "message"), None)
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
                for line in report_unreadable(lines(path), self.problems, path)
                if b"session_meta" not in line.data
            )
            more = sum(bool(text) and sha256(text).digest() not in here for text in texts)
            if more:
                what = f"a copy with {more} record{'s' * (more > 1)} that the session no longer has: import it by name"
                report(self.problems, what, where=name)

    def steps(self) -> Iterator[Step]:
        pending: ClawRecord | None = None
        new = UnknownRecords(NAME)
        for record in files.records(self.path, self.object, self.problems):
            kind = record.record.get("type")
            if kind == "compaction" and not self.has_messages:
                # The last one counts, and the summary that it put in comes right after it.
                pending = record
            elif kind == "message":
                message = self.message(record, record.record.get("message"))
                is_summary = message is not None and message.role == "system" and not self.has_messages
                self.has_messages = True
                if pending is not None:
                    yield self.compaction(pending, message if is_summary else None)
                if message is None:
                    yield self.unknown(record, kind)
                elif pending is None or not is_summary:
                    yield Record(entry=message)
                pending = None
            elif kind == "prompt_history":
                yield self.prompt(record)
            elif kind != "session_meta":
                if kind == "compaction":
                    report(self.problems, "a compaction after messages: kept, with no effect", record)
                else:
                    new.count(kind if isinstance(kind, str) else "record")
                yield self.unknown(record, kind)
        if pending is not None:
            yield self.compaction(pending, None)
        new.report(self.problems)

    def compaction(self, line: ClawRecord, summary: Message | None) -> Record:
        record = line.record
        meta: dict[str, Any] = {}
        names = {"count": "count", "removed_message_count": "removed", "summary": "summary"}
        for name, short in names.items():
            value = record.get(name)
            if isinstance(value, str) if name == "summary" else type(value) is int and 0 <= value < 1 << 32:
                meta[short] = value
            else:
                report(self.problems, f"a compaction without {name}", line)
        more = {key: value for key, value in record.items() if key not in names and key != "type"}
        origin = {"agent": NAME, **({"record": more} if more else {})}
        replacement: list[Any] = [summary] if summary else []
        return Record(entry=Compaction(replacement=replacement, at=self.created, meta=meta, origin=origin))

    def prompt(self, line: ClawRecord) -> Record:
        record = line.record
        text, at = record.get("text"), record.get("timestamp_ms")
        if not isinstance(text, str):
            report(self.problems, "a prompt without text: kept as it is", line)
            return self.unknown(line, "prompt_history")
        when = from_ms(at)
        more = {key: value for key, value in record.items() if key not in ("type", "text", "timestamp_ms")}
        if when is None or to_ms(when) != at:
            more["timestamp_ms"] = at
        origin = {"first": None if self.has_messages else True, "record": more or None}
        origin = {"agent": NAME, "type": "prompt_history", **without_none(origin)}
        return Record(entry=Note(text=text, at=when or self.created, origin=origin))

    def unknown(self, record: ClawRecord, kind: Any) -> Record:
        name = kind if isinstance(kind, str) else "record"
        origin = {"agent": NAME, **({} if kind in _KINDS else {UNKNOWN: name})}
        return Record(entry=Custom(kind=f"claw.{name[:80]}", data=record.record, at=self.created, origin=origin))

    def message(self, record: ClawRecord, raw: Any) -> Message | None:
        inner = fields(raw)
        role, blocks = inner.get("role"), inner.get("blocks")
        if role not in ("system", "user", "assistant", "tool") or not isinstance(blocks, list):
            report(self.problems, "a message without a known role or without blocks: kept as it is", record)
            return None
        ours = [self.block(record, block) for block in cast("list[Any]", blocks)]
        pairs = enumerate(zip(ours, cast("list[Any]", blocks), strict=True))
        early = [index for index, (block, was) in pairs if isinstance(block, Thinking) and "thinking" not in was]
        message = Message(
            role="tool" if role != "assistant" and any(isinstance(block, ToolResult) for block in ours) else role,
            blocks=ours,
            usage=self.usage(record, raw.get("usage")),
            at=self.created,
            origin={"agent": NAME, **({EARLY: early} if early else {})},
        )
        patch = deep_patch(plain_record(message, Tally()), record.record, keeps_additions=True)
        return replace(message, origin={**message.origin, "patch": patch}) if patch else message

    def usage(self, record: ClawRecord, raw: Any) -> Usage | None:
        if raw is None:
            return None
        counts = [count for name in COUNTERS if (count := as_counter(fields(raw).get(name))) is not None]
        if len(counts) < len(COUNTERS):
            report(self.problems, "a usage that is none: not counted", record)
            return None
        return Usage(*counts[:3], output_tokens=counts[3])

    def block(self, line: ClawRecord, raw: Any) -> AnyBlock:
        match raw:
            case {"type": "text", "text": str(words)}:
                return Text(text=words)
            case {"type": "thinking", "thinking": str(words)} | {"type": "thinking", "text": str(words)}:
                signature = raw.get("signature")
                data = {"signature": signature} if isinstance(signature, str) else None
                return Thinking(text=words, provider="anthropic" if data else None, data=data)
            case {"type": "tool_use", "id": str(id), "name": str(name), "input": given}:
                if isinstance(given, str):
                    return ToolCall(id=id, name=name, input=input_of(given))
                report(self.problems, f"the input of a tool is {given!r:.40}, which claw refuses", line)
                return ToolCall(id=id, name=name, input=given)
            case {"type": "tool_result", "tool_use_id": str(call), "output": str(output)}:
                tool, failed = raw.get("tool_name"), raw.get("is_error")
                if not isinstance(tool, str) or not isinstance(failed, bool):
                    what = f"a result with tool_name {tool!r:.40} and is_error {failed!r:.40}, which claw refuses"
                    report(self.problems, what, line)
                name = tool if isinstance(tool, str) else None
                return ToolResult(call=call, content=output, is_error=failed is True, name=name)
            case _:
                what = f"a block of the unknown type {fields(raw).get('type')!r:.80}: kept as it is"
                report(self.problems, what, line)
                return unknown(NAME, raw)
