"""goose: a database under `~/.local/share/goose/sessions`, JSON lines of earlier versions, and exports. Only read.

Nothing is taken out of a conversation when it is compacted: what came before is kept from the model, and a summary that
only the model sees follows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from turnlog.formats import Format, Places, Reading, Record, Resuming, SessionHeader, Source, Spawn, Step, Watching
from turnlog.formats._shared.finding import files_under, head_of
from turnlog.formats._shared.foreign import unknown
from turnlog.formats._shared.json import decode, decoded, from_base64, lines
from turnlog.formats._shared.key import Keys
from turnlog.formats._shared.problem import Problems, of_unknown_role, report
from turnlog.formats._shared.records import loaded, rows
from turnlog.formats._shared.sqlite import ERRORS, is_database, opened, opened_for, sessions_in
from turnlog.formats._shared.value import fields, items, json_text, moment, said, text, usage_in
from turnlog.log.block import AnyBlock, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Compaction, Edit, Message, Note, Spent
from turnlog.log.usage import Usage

_NAME = "goose"
_ASIDE = ("systemNotification", "toolConfirmationRequest", "actionRequired", "conversationCompacted")
"""What is between the program and the person, and never goes to the model."""
_HIDDEN = ("sub_agent", "hidden")


def _homes(places: Places) -> list[str]:
    root = places.environ.get("GOOSE_PATH_ROOT")
    if root:
        return [os.path.join(root, "data", "sessions")]
    base = places.environ.get("XDG_DATA_HOME") or os.path.join(places.home, ".local", "share")
    folders = [os.path.join(base, "goose", "sessions")]
    if places.environ.get("APPDATA"):
        folders.append(os.path.join(places.environ["APPDATA"], "Block", "goose", "data", "sessions"))
    return folders


def _find(path: str) -> Iterator[Source]:
    for file in files_under(path):
        yield from _in_file(file)


def _in_file(path: str) -> Iterator[Source]:
    if path.endswith(".db"):
        if _is_database(path):
            yield from sessions_in(_NAME, path, "sessions", "created_at")
    elif (path.endswith(".jsonl") and _is_legacy(path)) or (path.endswith(".json") and _is_export(path)):
        yield Source(_NAME, path)


def _is_database(path: str) -> bool:
    return is_database(path, messages=("id", "session_id", "content_json"), sessions=("id", "working_dir"))


def _is_legacy(path: str) -> bool:
    """The first line tells of the session, and the others are messages."""
    try:
        for number, line in enumerate(lines(path, limit=64 << 20)):
            record = fields(decode(line.data))
            if number == 0:
                is_head = "working_dir" in record and ("description" in record or "message_count" in record)
                if not is_head or "role" in record or "type" in record:
                    return False
            elif line.data.strip():
                return "role" in record and "content" in record
    except (OSError, ValueError):
        return False
    return False


def _is_export(path: str) -> bool:
    head = head_of(path) or b""
    return b'"working_dir"' in head and b'"extension_data"' in head and head.lstrip()[:1] == b"{"


class _Row(Struct):
    """One message as it is stored, and who sees it."""

    id: str | None
    role: Any
    content: Any
    created: Any
    about: dict[str, Any]

    @property
    def is_sent(self) -> bool:
        return self.about.get("agentVisible") is not False

    @property
    def is_shown(self) -> bool:
        return self.about.get("userVisible") is not False


class _StoredSession(Struct):
    """One session: what is known of it, who sees each of its messages, the messages, and each request it paid for."""

    info: dict[str, Any]
    seen: list[tuple[bool, bool]]
    rows: Iterator[_Row]
    ledger: list[dict[str, Any]]


def _open(source: Source, problems: Problems) -> _StoredSession:
    if source.path.endswith(".db"):
        return _from_database(source, problems)
    if source.path.endswith(".jsonl"):
        listed = [row.data for row in rows(source.path, problems, marks=("role", "working_dir"))]
        head = [record for record in listed if "role" not in record][:1]
        info, listed = (head[0] if head else {}), [record for record in listed if "role" in record]
    else:
        info = fields(loaded(source.path, problems))
        listed = items(info.get("conversation") or info.get("messages"))
    messages = [_row(raw) for raw in listed]
    return _StoredSession(info, [(row.is_sent, row.is_shown) for row in messages], iter(messages), [])


def _row(raw: dict[str, Any]) -> _Row:
    return _Row(
        text(raw.get("id")), raw.get("role"), raw.get("content"), raw.get("created"), fields(raw.get("metadata"))
    )


def _from_database(source: Source, problems: Problems) -> _StoredSession:
    with opened_for(source) as base:
        session = next(base.rows("sessions", "id = ?", (source.key,)), None)
        info = dict(session) if session is not None else {"id": source.key}
        mine, key = "session_id = ?", (source.key,)
        only = ("metadata_json",) if base.has("messages", "metadata_json") else ("id",)
        seen = [
            (about.get("agentVisible") is not False, about.get("userVisible") is not False)
            for about in (fields(decoded(row[0])) for row in base.rows("messages", mine, key, only=only, order="id"))
        ]
        ledger: list[dict[str, Any]] = []
        if base.has("usage_ledger", "id", "session_id"):
            ledger = [dict(row) for row in base.rows("usage_ledger", mine, key, order="id")]
    for key in ("model_config_json", "recipe_json"):
        info[key.removesuffix("_json")] = decoded(info.get(key))
    return _StoredSession(info, seen, _rows_of(source, problems), ledger)


def _rows_of(source: Source, problems: Problems) -> Iterator[_Row]:
    try:
        with opened(source.path) as base:
            for row in base.rows("messages", "session_id = ?", (source.key,), order="id"):
                raw: dict[str, Any] = dict(row)
                content = decoded(raw.get("content_json"))
                if content is None:
                    report(problems, "a message that is not JSON", where=f"message {raw.get('id')}")
                about = fields(decoded(raw.get("metadata_json")))
                yield _Row(text(raw.get("message_id")), raw.get("role"), content, raw.get("created_timestamp"), about)
    except ERRORS as error:
        report(problems, f"the database cannot be read any further: {error}")


def _read(source: Source) -> Reading:
    problems: Problems = []
    shelf = _open(source, problems)
    info = shelf.info
    parent, kind = text(info.get("parent_session_id")), info.get("session_type")
    id = text(info.get("id")) or source.key or os.path.splitext(os.path.basename(source.path))[0]
    created = moment(info.get("created_at"))
    header = SessionHeader(
        id=id,
        # Ids count the sessions of a day, on every machine from one.
        identity=f"{id} {created:%Y-%m-%d %H:%M:%S}" if created else "",
        workspace=text(info.get("working_dir")),
        title=text(info.get("name")) or text(info.get("description")),
        created=created,
        hidden=kind in _HIDDEN,
        spawned=Spawn(parent) if parent and kind == "sub_agent" else None,
    )
    reading = Reading(header=header, steps=iter(()), problems=problems)
    model = text(fields(info.get("model_config")).get("model_name"))
    reading.facts |= said({
        "model": model, "provider": text(info.get("provider_name")), "goose.recipe": info.get("recipe"),
        "permission_mode": text(info.get("goose_mode")), "archived": True if info.get("archived_at") else None,
    })  # fmt: skip
    booked = sum((_usage(row, "", "cost") for row in shelf.ledger), Usage())
    rest = _minus(_usage(info, "accumulated_", "accumulated_cost"), booked)
    if rest != Usage():
        reading.totals[model or ""] = rest
    reading.steps = _steps(shelf, reading)
    return reading


def _usage(raw: dict[str, Any], prefix: str, cost_name: str) -> Usage:
    """goose counts what a cache answered or took as input."""
    names = (f"{prefix}{name}_tokens" for name in ("input", "output", "cache_read", "cache_write"))
    return usage_in(raw, *names, cost=cost_name, holds_cached=True)


def _minus(total: Usage, part: Usage) -> Usage:
    """What the totals of a session say beyond its requests: those from before requests were noted one by one."""
    cost = (total.cost_micros or 0) - (part.cost_micros or 0)
    return replace(total.beyond(part), cost_micros=cost if cost > 1 else None)  # less is what rounding left


def _steps(shelf: _StoredSession, reading: Reading) -> Iterator[Step]:
    keys, used = Keys(), set[str]()
    last = max((index for index, (_, is_shown) in enumerate(shelf.seen) if not is_shown), default=-1)
    was_hidden, summary = False, list[tuple[str, Message]]()
    for index, row in enumerate(shelf.rows):
        entries = _entries(row, reading.problems)
        if summary and row.is_shown:
            yield _compaction(summary)
            summary = []
        for number, entry in enumerate(entries):
            key = f"{row.id}#{number}" if number else row.id
            if key is None or key in used:
                key = keys.of(entry)
            used.add(key)
            if not row.is_shown and was_hidden and isinstance(entry, Message):
                summary.append((key, entry))
                continue
            yield Record(entry=entry, key=key)
            if not row.is_sent and index > last and entry.is_node:
                # Kept from the model, and not because a summary stands for it.
                yield Record(entry=Edit(entry=0, at=entry.at), key=f"hidden {key}", names={"entry": key})
        was_hidden = was_hidden or not row.is_sent
    if summary:
        yield _compaction(summary)
    for row in shelf.ledger:
        why = "compaction" if row.get("is_compaction") else None
        entry = Spent(
            usage=_usage(row, "", "cost"),
            model=text(row.get("model")),
            why=why,
            at=moment(row.get("created_timestamp")),
        )
        yield Record(entry=entry, key=f"request {row.get('id')}")


def _compaction(summary: list[tuple[str, Message]]) -> Record:
    first = summary[0][1]
    messages = [replace(message, at=None, display=None) for _, message in summary]
    return Record(entry=Compaction(replacement=list(messages), at=first.at), key=f"compaction {summary[0][0]}")


def _entries(row: _Row, problems: Problems) -> list[Message | Note]:
    """A message of goose: what tools answered, what was said, or what only people see."""
    at = moment(row.created)
    parts = cast("list[Any]", row.content) if isinstance(row.content, list) else []
    aside = [fields(part) for part in parts if fields(part).get("type") in _ASIDE]
    rest = [part for part in parts if fields(part).get("type") not in _ASIDE]
    if row.role not in ("user", "assistant"):
        return [of_unknown_role(row.role, parts, at, problems)]
    if aside and not rest:
        words = next((text(part.get("msg")) for part in aside if part.get("msg")), None)
        return [Note(text=words or str(aside[0]["type"]), data=aside, at=at)]
    results: list[AnyBlock] = [_result(fields(part)) for part in rest if fields(part).get("type") == "toolResponse"]
    blocks = [_block(part) for part in rest if fields(part).get("type") != "toolResponse"]
    display = None if row.is_shown else False
    entries: list[Message | Note] = []
    if results:
        entries.append(Message(role="tool", blocks=results, at=at, display=display))
    if blocks or not results:
        model = text(fields(row.about.get("inference")).get("model"))
        meta = {"aside": aside} if aside else None
        calls = any(isinstance(block, ToolCall) for block in blocks)
        stop = ("tool_use" if calls else "end") if row.role == "assistant" else None
        entries.append(Message(role=row.role, blocks=blocks, at=at, display=display, stop=stop, meta=meta, model=model))
    return entries


def _block(raw: Any) -> AnyBlock:
    part = fields(raw)
    kind = part.get("type")
    if kind == "text" and isinstance(part.get("text"), str):
        return Text(text=part["text"])
    if kind in ("toolRequest", "frontendToolRequest"):
        call = fields(part.get("toolCall"))
        value = fields(call.get("value"))
        if text(value.get("name")) is not None and isinstance(part.get("id"), str):
            return ToolCall(id=part["id"], name=value["name"], input=value.get("arguments"))
    elif kind == "image" and (picture := from_base64(part.get("data"))) is not None:
        return Image(media_type=text(part.get("mimeType")), data=picture)
    elif kind == "thinking" and isinstance(part.get("thinking"), str):
        signature = text(part.get("signature"))
        # Only Anthropic signs what goose keeps as thinking.
        data = {"signature": signature} if signature else None
        return Thinking(text=part["thinking"], provider="anthropic" if data else None, data=data)
    elif kind == "redactedThinking" and text(part.get("data")) is not None:
        return Thinking(provider="anthropic", data={"redacted": part["data"]})
    return unknown(_NAME, raw)


def _result(part: dict[str, Any]) -> ToolResult:
    answer = fields(part.get("toolResult"))
    value, error = answer.get("value"), answer.get("error")
    content: Any = cast("Any", value) if isinstance(value, list) else fields(value).get("content")
    is_error = answer.get("status") == "error" or fields(value).get("isError") is True
    reply: str | list[AnyBlock] = error if isinstance(error, str) else ""
    if isinstance(content, list):
        reply = [_block(inner) for inner in cast("list[Any]", content)]
        if len(reply) == 1 and isinstance(reply[0], Text):
            reply = reply[0].text
    elif value is not None and not reply:
        reply = json_text(value)
    return ToolResult(call=str(part.get("id") or ""), content=reply, is_error=is_error)


FORMAT = Format(
    "goose: its database, JSON lines of earlier versions, exports",
    _homes,
    _find,
    _read,
    resume=Resuming(
        command=lambda id, path, workspace: ["goose", "session", "--resume", "--session-id", id],
        ids=r"\d{8}_\d{1,9}",
    ),
    watch=Watching(by_file=True),
)
