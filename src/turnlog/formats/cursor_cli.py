"""Cursor CLI: a database per chat, `~/.cursor/chats/<folder>/<chat>/store.db`, and transcripts. Only read.

A database holds messages under their digests; a node of protobuf names those of the conversation in their order. A
transcript says less, so it is read where there is no database of that chat: for subagents, above all.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from hashlib import md5
from typing import Any

from turnlog.formats import Format, Places, Reading, Record, SessionHeader, Source, Spawn, Step, Watching
from turnlog.formats._shared.blocks import stop_of, unknown, usual
from turnlog.formats._shared.finding import folder_of, opened_for, read_from, resume_command
from turnlog.formats._shared.origin import UnknownRecords
from turnlog.interop.folder import files_under, names_in
from turnlog.interop.json import decoded, json_or_text
from turnlog.interop.problem import Problems, report
from turnlog.interop.protobuf import length_fields
from turnlog.interop.records import first_records, load_sidecar, rows
from turnlog.interop.sqlite import ForeignDatabase, is_database
from turnlog.interop.value import as_list, fields, items, json_text, moment, text, without_none
from turnlog.log.block import AnyBlock, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Compaction, Message, Note

_NAME = "cursor-cli"
_STORE, _CHATS, _TRANSCRIPTS = "store.db", "chats", "agent-transcripts"
_UNNAMED = "New Agent"
_MOST = 200_000
"""So many messages and nodes a root may lead to."""
_QUERY = re.compile(r"<user_query>\n?(.*?)\n?</user_query>", re.DOTALL)
_TIME = re.compile(r"<timestamp>\w+, (\w{3} \d{1,2}, \d{4}, \d{1,2}:\d\d [AP]M) \(UTC([+-]\d{1,2})?(?::(\d\d))?\)")
_SIGNS = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}


def _homes(places: Places) -> list[str]:
    folders = [places.environ.get(name) for name in ("CURSOR_DATA_DIR", "CURSOR_CONFIG_DIR")]
    config = os.path.join(folder_of(places, "XDG_CONFIG_HOME", ".config"), "cursor")
    bases = [*filter(None, folders), os.path.join(places.home, ".cursor"), config]
    return [os.path.join(base, name) for base in dict.fromkeys(bases) for name in (_CHATS, "acp-sessions", "projects")]


def _find(path: str) -> Iterator[Source]:
    for file in files_under(path):
        if os.path.basename(file) == _STORE:
            if is_database(file, blobs=("id", "data"), meta=("key", "value")) and file == _of_copies(file):
                yield Source(_NAME, file)
        elif file.endswith(".jsonl") and _is_transcript(file) and not _stores(_base_of(file), _id_of(file)):
            yield Source(_NAME, file)


def _id_of(path: str) -> str:
    """The id of a chat: what its folder is called, or its transcript."""
    folder, name = os.path.split(path)
    return os.path.basename(folder) if name == _STORE else name.removesuffix(".jsonl")


def _is_transcript(path: str) -> bool:
    firsts = first_records(path, 3) if f"/{_TRANSCRIPTS}/" in path else ()
    return any("role" in first and "content" in fields(first.get("message")) for first in firsts)


def _base_of(path: str) -> str:
    """Where Cursor keeps everything, above `projects/<folder>/agent-transcripts`."""
    return os.path.dirname(os.path.dirname(path.partition(f"/{_TRANSCRIPTS}/")[0]))


def _stores(base: str, id: str) -> list[str]:
    """The databases that are called so: a chat may have been taken along to another folder, and gone on there."""
    chats = os.path.join(base, _CHATS)
    folders = [os.path.join(base, "acp-sessions"), *(os.path.join(chats, name) for name in names_in(chats))]
    return [file for folder in folders if os.path.isfile(file := os.path.join(folder, id, _STORE))]


def _of_copies(path: str) -> str:
    """Of several databases of one chat the one that lies under its own folder, or else the largest."""
    folder = os.path.dirname(os.path.dirname(path))
    base = os.path.dirname(os.path.dirname(folder)) if os.path.basename(os.path.dirname(folder)) == _CHATS else ""
    stores = _stores(base, _id_of(path)) if base else []
    if len(stores) < 2:
        return path
    own = [store for store in stores if _hash_of(_summary_of(store)) == store.split(os.sep)[-3]]
    return (own or sorted(stores, key=lambda store: (-os.stat(store).st_size, store)))[0]


def _hash_of(about: dict[str, Any]) -> str:
    return md5((text(about.get("cwd")) or "").encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()


def _sidecars(source: Source) -> list[str]:
    """The files beside a database."""
    if os.path.basename(source.path) != _STORE:
        return []
    return [f"{source.path}-wal", os.path.join(os.path.dirname(source.path), "meta.json")]


def _summary_of(path: str) -> dict[str, Any]:
    """What `meta.json` beside a database says of the chat."""
    return fields(load_sidecar(os.path.join(os.path.dirname(path), "meta.json"), []))


def _read(source: Source) -> Reading:
    if os.path.basename(source.path) != _STORE:
        return _transcript(source)
    with opened_for(source, has_keys=False) as base:
        about = _about(base)
    summary = _summary_of(source.path)
    title = text(summary.get("title")) or text(about.get("name"))
    header = SessionHeader(
        id=_id_of(source.path),
        workspace=text(summary.get("cwd")),
        title=None if title == _UNNAMED else title,
        created=moment(summary.get("createdAtMs")) or moment(about.get("createdAt")),
    )
    named, problems = text(about.get("lastUsedModel")), Problems()
    model = None if named == "default" else named
    steps = _steps(source, text(about.get("latestRootBlobId")) or "", model, problems)
    facts = without_none({"model": model, "permission_mode": text(about.get("mode"))})
    return Reading(header=header, steps=steps, problems=problems, facts=facts)


def _about(base: ForeignDatabase) -> dict[str, Any]:
    """What a database says of its chat, in hexadecimal; but not the key that is in it."""
    value = base.row("meta", "key = '0'", only=("value",)).get("value")
    if isinstance(value, str) and not value.lstrip().startswith("{"):
        with suppress(ValueError):
            value = bytes.fromhex(value)
    about = fields(decoded(value))
    about.pop("blobEncryptionKey", None)
    return about


def _steps(source: Source, root: str, model: str | None, problems: Problems) -> Iterator[Step]:
    times = Counter[str]()
    with read_from(source, problems) as base:
        for digest, message in _messages(base, root, problems):
            times[digest] += 1
            key = f"{digest}#{times[digest]}" if times[digest] > 1 else digest
            yield Record(entry=_entry(message, model), key=key)


def _messages(base: ForeignDatabase, root: str, problems: Problems) -> Iterator[tuple[str, dict[str, Any]]]:
    """The messages that a root leads to, each with its digest, in their order."""
    waiting, nodes = [(root, True)], set[str]()
    for _ in range(_MOST):
        if not waiting:
            return
        digest, is_node = waiting.pop()
        value = base.row("blobs", "id = ?", (digest,), only=("data",)).get("data")
        data = value.encode() if isinstance(value, str) else value
        if not isinstance(data, bytes):
            report(problems, f"{'a node' if is_node else 'a message'} that is not there", where=f"{digest:.64}")
            continue
        inner = list(reversed(list(length_fields(data))))
        if is_node and digest not in nodes:
            nodes.add(digest)
            waiting += [(link.hex(), number == 2) for number, link in inner if number < 3 and len(link) == 32]
        elif not is_node:
            message = fields(decoded(data if data[:1] == b"{" else dict(inner).get(4, b"")))
            if message.get("role") is None:
                report(problems, "a message that is not JSON", where=f"{digest:.64}")
            else:
                yield digest, message
    if waiting:
        report(problems, f"more than {_MOST:,} messages")


def _entry(raw: dict[str, Any], model: str | None) -> Message | Compaction | Note:
    content, role = raw.get("content"), raw.get("role")
    parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else as_list(content)
    if role == "tool" and isinstance(raw.get("tool_call_id"), str):  # as OpenAI has it
        words = " ".join(str(part["text"]) for part in items(parts) if text(part.get("text")))
        return Message(role="tool", blocks=[ToolResult(call=raw["tool_call_id"], content=words)])
    blocks = [_block(part) for part in parts]
    blocks += [_call(fields(call.get("function")), call.get("id")) for call in items(raw.get("tool_calls"))]
    if fields(fields(raw.get("providerOptions")).get("cursor")).get("isSummary") is True:
        return Compaction(replacement=[Message(role="user", blocks=blocks)])
    if role == "user":
        return _prompt(blocks)
    if role == "assistant":
        return Message(role="assistant", blocks=blocks, model=model, stop=stop_of(blocks))
    if role in ("tool", "system"):
        return Message(role=role, blocks=blocks)
    return Note(text="a message of an unknown role", data=raw)


def _prompt(blocks: list[AnyBlock]) -> Message:
    """A person's message: what they typed stands between tags; what has no such place was put there by Cursor."""
    whole = "\n".join(block.text for block in blocks if isinstance(block, Text))
    typed = _QUERY.findall(whole)
    is_wrapped = whole.lstrip().startswith(("<user_info>", "<system_reminder>", "<timestamp>", "<user_query>"))
    display = "\n".join(typed) if typed else False if is_wrapped else None
    return Message(role="user", blocks=blocks, at=_moment(whole), display=display)


def _moment(whole: str) -> datetime | None:
    match = _TIME.search(whole)
    if match is None:
        return None
    hours, minutes = int(match[2] or 0), int(match[3] or 0)
    try:
        zone = timezone(timedelta(hours=hours, minutes=-minutes if hours < 0 else minutes))
        return moment(datetime.strptime(match[1], "%b %d, %Y, %I:%M %p").replace(tzinfo=zone))
    except (ValueError, OverflowError):
        return None


def _block(raw: Any) -> AnyBlock:
    part = fields(raw)
    match part.get("type"):
        case "reasoning" if isinstance(part.get("text"), str):
            return Thinking(text=part["text"])
        case "tool-call" if text(part.get("toolCallId")) and text(part.get("toolName")):
            return ToolCall(id=part["toolCallId"], name=part["toolName"], input=part.get("args"))
        case "tool-result" if text(part.get("toolCallId")):
            given = part.get("result")
            content = given if isinstance(given, str) else json_text(given)
            return ToolResult(call=part["toolCallId"], name=text(part.get("toolName")), content=content)
        case "image":
            return _image(part) or unknown(_NAME, raw)
        case _:
            return usual(part) or unknown(_NAME, raw)


def _image(part: dict[str, Any]) -> Image | None:
    given = fields(part.get("image")).get("hex")
    try:
        data = bytes.fromhex(given) if isinstance(given, str) else b""
    except ValueError:
        return None
    kind = next((kind for sign, kind in _SIGNS.items() if data.startswith(sign)), None)
    return Image(media_type=kind, data=data) if data else None


def _call(function: dict[str, Any], id: Any) -> AnyBlock:
    if text(function.get("name")) is None or text(id) is None:
        return unknown(_NAME, {"type": "tool_call", "id": id, "function": function})
    return ToolCall(id=id, name=function["name"], input=json_or_text(function.get("arguments")))


def _transcript(source: Source) -> Reading:
    folder = os.path.dirname(source.path)
    is_child = os.path.basename(folder) == "subagents"
    parent = os.path.basename(os.path.dirname(folder))
    stores = _stores(_base_of(source.path), parent if is_child else _id_of(source.path))
    header = SessionHeader(
        id=_id_of(source.path),
        workspace=text(_summary_of(stores[0]).get("cwd")) if stores else None,
        spawned=Spawn(parent) if is_child else None,
    )
    problems = Problems()
    return Reading(header=header, steps=_lines(source, problems), problems=problems)


def _lines(source: Source, problems: Problems) -> Iterator[Step]:
    """Lines have neither ids nor times, and no results: a call is known by its place."""
    others, calls = UnknownRecords(_NAME), 0
    for row in rows(source.path, problems, marks=("role", "type")):
        role, content = row.data.get("role"), fields(row.data.get("message")).get("content")
        if role not in ("user", "assistant"):
            kind = str(row.data.get("type"))
            if kind == "error":
                yield Record(entry=Note(text=text(row.data.get("error")) or "an error", data=row.data))
            elif kind != "turn_ended":
                yield Record(entry=others.note(kind, row.data))
            continue
        blocks: list[AnyBlock] = []
        for part in as_list(content):
            if fields(part).get("type") == "tool_use" and text(part.get("name")):
                calls += 1
                blocks.append(ToolCall(id=f"call_{calls}", name=part["name"], input=part.get("input")))
            else:
                blocks.append(_block(part))
        yield Record(entry=_prompt(blocks) if role == "user" else Message(role=role, blocks=blocks))
    others.report(problems)


FORMAT = Format(
    "Cursor CLI: its chats, and transcripts of subagents",
    _homes,
    _find,
    _read,
    resume=resume_command("cursor-agent", "--resume", "ID"),
    watch=Watching(by_file=True, sidecars=_sidecars),
)
