"""A session of pi, read in one pass: entries hang on each other by `parentId`, and the last line is where it stands.

The program gives old files new ids in place, so ids only say what hangs on what; content tells entries apart.
"""

from __future__ import annotations

import binascii
import os
from base64 import b64decode
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from msgspec.structs import force_setattr, replace

from turnlog.formats import Forked, Header, Move, Problem, Reading, Record, Source, Step
from turnlog.formats._json import decode
from turnlog.formats._key import Keys
from turnlog.formats._records import Row, count, fields, items, moment, rows, tell, text
from turnlog.formats._tally import unknown
from turnlog.log.block import AnyBlock, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Compaction, Custom, Edit, Entry, Message, Note, Spent
from turnlog.log.usage import Usage

_STOPS = {"stop": "end", "length": "length", "toolUse": "tool_use", "error": "error", "aborted": "aborted"}
_LINKS = ("model_change", "thinking_level_change", "label", "session_info", "session", "usage")
_PROVIDERS = {"anthropic": "anthropic", "openai": "openai", "google": "gemini"}


def read(source: Source) -> Reading:
    """See `turnlog.formats`."""
    row = next(rows(source.path, []), None)
    first: dict[str, Any] = row.data if row is not None and row.data.get("type") == "session" else {}
    parent = text(first.get("parentSession")) or text(first.get("branchedFrom"))
    stem = os.path.basename(source.path).removesuffix(".jsonl")
    header = Header(
        id=text(first.get("id")) or stem.rpartition("_")[2],
        workspace=text(first.get("cwd")),
        created=moment(first.get("timestamp")),
        fork=_fork(parent, source) if parent else None,
        origin={"version": first["version"]} if "version" in first else None,
    )
    reading = Reading(header=header, steps=iter(()))
    reading.steps = _Reader(source, reading).steps()
    return reading


def _fork(parent: str, source: Source) -> Forked:
    name = os.path.basename(parent)
    beside = os.path.join(os.path.dirname(source.path), name)
    found = next((place for place in (parent, beside) if os.path.isfile(place)), None)
    return Forked(
        name.removesuffix(".jsonl").rpartition("_")[2],
        source=Source(source.agent, found) if found is not None else None,
    )


class _Reader:
    def __init__(self, source: Source, reading: Reading) -> None:
        self._source = source
        self._reading = reading
        self._keys = Keys()
        self._places: dict[str, str] = {}
        """The node that each entry of the file stands for, by the id it has there."""
        self._links: set[str] = set()
        """Those that are no node themselves."""
        self._before = ""
        self._last = ""

    def steps(self) -> Iterator[Step]:
        """All of it."""
        out: list[Step] = []
        places = self._places
        for number, row in enumerate(rows(self._source.path, self._reading.problems)):
            record = row.data
            id = record.get("id")
            if type(id) is not str or not id:
                id = f"line {number}"
            parent = record.get("parentId") if "parentId" in record else self._before
            place = places.get(parent) if type(parent) is str else ""
            if place is None and not parent:
                place = ""
            elif place is None:
                tell(
                    self._reading.problems,
                    Problem(f"hangs on entry {parent!r:.40}, which is missing", offset=row.offset),
                )
                place = self._last
            key = self._entry(record, row, place, out)
            if out:
                yield from out
                out.clear()
            if not key:
                self._links.add(id)
            places[id] = key or ("" if record.get("type") == "session" else place)
            self._before = id
        live = self._places.get(self._before, "")
        if live != self._last:
            yield Move(to=live, key=f"live {live} {self._last}")

    def _entry(self, record: dict[str, Any], row: Row, place: str, out: list[Step]) -> str:
        """The steps of one line; returns the key of the node it is."""
        kind, at = str(record.get("type")), moment(record.get("timestamp"))
        names: dict[str, str] = {}
        made: Entry | None = None
        if kind == "message":
            made = _message(fields(record.get("message")))
        elif kind == "compaction":
            made, names = self._compaction(record), self._kept(record, row)
        elif kind == "branch_summary":
            summary = text(record.get("summary")) or ""
            about = {key: record.get(key) for key in ("fromId", "details", "summary")}
            made = Custom(kind="pi.branch_summary", data=about, blocks=[Text(text=summary)] if summary else [])
        elif kind == "custom_message":
            about = {key: record.get(key) for key in ("details", "display")}
            made = Custom(kind=f"pi.{record.get('customType')}", data=about, blocks=_blocks(record.get("content")))
        elif kind == "custom":
            made = Custom(kind=f"pi.{record.get('customType')}", data=record.get("data"))
        elif kind == "context_edit":
            target = self._places.get(str(record.get("targetId")), "")
            if target:
                instead = record.get("replacement")
                made = Edit(entry=0, blocks=None if instead is None else _blocks(fields(instead).get("content")))
                names = {"entry": target}
        elif kind in _LINKS:
            out += self._link(kind, record, at)
            return ""
        else:
            tell(
                self._reading.problems,
                Problem(f"an entry of the unknown type {kind!r:.60}: kept as a note", offset=row.offset),
            )
            out.append(self._mark(Note(text=f"an entry of the type {kind}", data=record), at))
            return ""
        if made is None:
            tell(self._reading.problems, Problem(f"a {kind} that makes no sense: kept as a note", offset=row.offset))
            out.append(self._mark(Note(text=f"a {kind} that makes no sense", data=record), at))
            return ""
        if place != self._last:
            out.append(Move(to=place))
        step = self._mark(made, at)
        out.append(replace(step, names=names) if names else step)
        self._last = step.key or ""
        if isinstance(made, Message) and made.stop in ("error", "aborted") and made.blocks:
            # The program leaves answers out that failed or were cut short.
            self._last = f"{step.key}#left out"
            out.append(Record(entry=Edit(entry=0, blocks=None), key=self._last, names={"entry": step.key or ""}))
        return self._last

    def _mark(self, entry: Any, at: datetime | None) -> Record:
        if entry.id != "-":
            force_setattr(entry, "id", "-")
        key = self._keys.of(entry)
        force_setattr(entry, "at", at)
        return Record(entry=entry, key=key)

    def _link(self, kind: str, record: dict[str, Any], at: datetime | None) -> Iterator[Step]:
        facts = self._reading.facts
        if kind in ("model_change", "session") and text(record.get("modelId")):
            facts["model"], facts["provider"] = record["modelId"], record.get("provider")
        if kind in ("thinking_level_change", "session") and text(record.get("thinkingLevel")):
            facts["thinking_level"] = record["thinkingLevel"]
        elif kind == "session_info" and text(record.get("name")):
            self._reading.header = replace(self._reading.header, title=record["name"])
        elif kind == "label" and text(record.get("label")):
            yield self._mark(Note(text=f"label: {record['label']}", data={"target": record.get("targetId")}), at)
        elif kind == "usage":
            spent = _usage(fields(record.get("usage")))
            if spent is not None:
                yield self._mark(Spent(usage=spent, model=text(record.get("model")), why=text(record.get("kind"))), at)

    def _compaction(self, record: dict[str, Any]) -> Compaction:
        before = record.get("tokensBefore")
        return Compaction(
            replacement=[Message(role="user", blocks=[Text(text=text(record.get("summary")) or "")])],
            tokens_before=before if type(before) is int else None,
            usage=_usage(fields(record.get("usage"))),
            meta=record.get("details"),
        )

    def _kept(self, record: dict[str, Any], row: Row) -> dict[str, str]:
        """The first entry that stays: the node at that line, or the next one behind it."""
        index = record.get("firstKeptEntryIndex")
        wanted = record.get("firstKeptEntryId")
        order = list(self._places)
        if wanted is None and type(index) is int and 0 <= index < len(order):
            start = index
        else:
            start = order.index(wanted) if isinstance(wanted, str) and wanted in self._places else -1
        if start < 0:
            if wanted is not None and wanted != record.get("id"):
                tell(self._reading.problems, Problem("a compaction keeps an entry that is missing", offset=row.offset))
            return {}
        key = next((self._places[id] for id in order[start:] if id not in self._links), "")
        return {"keep": key} if key else {}


# ── messages ──────────────────────────────────────────────────────────────────────────────────────


def _message(raw: dict[str, Any]) -> Entry | None:
    role = raw.get("role")
    if role in ("user", "system"):
        return Message(id="-", role=role, blocks=_blocks(raw.get("content")))
    if role == "assistant":
        provider = _PROVIDERS.get(str(raw.get("api")).partition("-")[0], text(raw.get("provider")))
        error = text(raw.get("errorMessage"))
        return Message(
            id="-",
            role="assistant",
            blocks=[_answer(part, provider) for part in items(raw.get("content"))],
            model=None if raw.get("model") == "unknown" else text(raw.get("model")),
            usage=_usage(fields(raw.get("usage"))),
            stop=_STOPS.get(str(raw.get("stopReason"))),
            error={"message": error} if error else None,
            meta={key: raw[key] for key in ("api", "provider") if text(raw.get(key))} or None,
        )
    if role == "toolResult":
        content = raw.get("content")
        result = ToolResult(
            call=str(raw.get("toolCallId") or ""),
            name=text(raw.get("toolName")),
            content=content if isinstance(content, str) else _blocks(content),
            is_error=raw.get("isError") is True,
            details=raw.get("details"),
        )
        return Message(id="-", role="tool", blocks=[result])
    if role == "bashExecution":
        about = {key: value for key, value in raw.items() if key not in ("role", "timestamp")}
        told = f"Ran `{raw.get('command')}`\n{raw.get('output') or ''}".rstrip()
        return Custom(kind="pi.bash", data=about, blocks=[] if raw.get("excludeFromContext") else [Text(text=told)])
    if role in ("custom", "hookMessage"):
        about = {key: raw.get(key) for key in ("details", "display")}
        return Custom(kind=f"pi.{raw.get('customType')}", data=about, blocks=_blocks(raw.get("content")))
    return None


def _blocks(content: Any) -> list[AnyBlock]:
    if isinstance(content, str):
        return [Text(text=content)]
    return [_block(part) for part in items(content)]


def _block(part: dict[str, Any]) -> AnyBlock:
    if part.get("type") == "text" and isinstance(part.get("text"), str):
        return Text(text=part["text"])
    if part.get("type") == "image" and isinstance(part.get("data"), str):
        try:
            return Image(media_type=text(part.get("mimeType")), data=b64decode(part["data"], validate=True))
        except (binascii.Error, ValueError):
            return unknown("pi", part)
    return unknown("pi", part)


def _answer(part: dict[str, Any], provider: str | None) -> AnyBlock:
    kind = part.get("type")
    if kind == "thinking":
        return Thinking(text=str(part.get("thinking") or ""), provider=provider, data=_signature(part, provider))
    if kind == "toolCall":
        return ToolCall(id=str(part.get("id") or ""), name=str(part.get("name") or ""), input=part.get("arguments"))
    return _block(part)


def _signature(part: dict[str, Any], provider: str | None) -> Any:
    signature = text(part.get("thinkingSignature"))
    if signature is None:
        return None
    if provider == "openai":
        try:
            return {"item": fields(decode(signature.encode()))}
        except (ValueError, UnicodeEncodeError):
            return {"signature": signature}
    return {"redacted": signature} if part.get("redacted") is True else {"signature": signature}


def _usage(raw: dict[str, Any]) -> Usage | None:
    if not raw:
        return None
    get = raw.get
    cost = fields(get("cost")).get("total")
    return Usage(
        input_tokens=count(get("input")),
        cache_read_tokens=count(get("cacheRead")),
        cache_write_tokens=count(get("cacheWrite")),
        output_tokens=count(get("output")),
        cost_micros=round(cost * 1_000_000) if isinstance(cost, (int, float)) and 0 < cost < 1e9 else None,
    )
