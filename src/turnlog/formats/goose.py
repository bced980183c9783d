"""goose: a database under `~/.local/share/goose/sessions`, JSON lines of earlier versions, and exports. Only read.

Nothing is taken out of a conversation when it is compacted: what came before is kept from the model, and a summary that
only the model sees follows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from turnlog.formats import Format, Places, Reading, Record, SessionHeader, Source, Spawn, Step, Watching
from turnlog.formats._shared.blocks import results_apart, unknown, usual
from turnlog.formats._shared.finding import folder_of, opened_for, read_from, resume_command, sessions_in
from turnlog.formats._shared.key import Keys
from turnlog.formats._shared.origin import of_unknown_role
from turnlog.interop.base64 import from_base64
from turnlog.interop.folder import files_under, head_of
from turnlog.interop.json import decoded
from turnlog.interop.problem import Problems, report
from turnlog.interop.records import first_records, load_document, rows
from turnlog.interop.sqlite import is_database
from turnlog.interop.value import as_list, fields, items, json_text, moment, text, usage_in, without_none
from turnlog.log.block import AnyBlock, Image, Text, ToolCall, ToolResult
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
    folders = [os.path.join(folder_of(places, "XDG_DATA_HOME", ".local/share"), "goose", "sessions")]
    if places.environ.get("APPDATA"):
        folders.append(os.path.join(places.environ["APPDATA"], "Block", "goose", "data", "sessions"))
    return folders


def _find(path: str) -> Iterator[Source]:
    for file in files_under(path):
        if file.endswith(".db"):
            if is_database(file, messages=("id", "session_id", "content_json"), sessions=("id", "working_dir")):
                yield from sessions_in(_NAME, file, "sessions", "created_at")
        elif (file.endswith(".jsonl") and _is_legacy(file)) or (file.endswith(".json") and _is_export(file)):
            yield Source(_NAME, file)


def _is_legacy(path: str) -> bool:
    """The first line tells of the session, and the others are messages."""
    head, message, *_ = [*first_records(path, 2), fields(None), fields(None)]
    is_head = "working_dir" in head and ("description" in head or "message_count" in head)
    return is_head and not {"role", "type"} & head.keys() and {"role", "content"} <= message.keys()


def _is_export(path: str) -> bool:
    head = head_of(path) or b""
    return b'"working_dir"' in head and b'"extension_data"' in head and head.lstrip()[:1] == b"{"


class _StoredSession(Struct):
    """One session: what is known of it, its messages as an export has them, and each request that it paid for."""

    info: dict[str, Any]
    messages: Iterator[dict[str, Any]]
    last_hidden: int
    """Which message is the last of those that people do not see; -1 where there is none."""
    ledger: list[dict[str, Any]]


def _open(source: Source, problems: Problems) -> _StoredSession:
    if source.path.endswith(".db"):
        return _from_database(source, problems)
    if source.path.endswith(".jsonl"):
        records = [row.data for row in rows(source.path, problems, marks=("role", "working_dir"))]
        info = next((record for record in records if "role" not in record), dict[str, Any]())
        messages = [record for record in records if "role" in record]
    else:
        info = fields(load_document(source.path, problems))
        messages = items(info.get("conversation") or info.get("messages"))
    return _StoredSession(info, iter(messages), _last_hidden(raw.get("metadata") for raw in messages), [])


def _last_hidden(abouts: Iterable[Any]) -> int:
    return max((index for index, about in enumerate(abouts) if not _is_shown(fields(about))), default=-1)


def _is_shown(about: dict[str, Any]) -> bool:
    return about.get("userVisible") is not False


def _from_database(source: Source, problems: Problems) -> _StoredSession:
    with opened_for(source) as base:
        info = base.row("sessions", "id = ?", (source.key,)) or {"id": source.key}
        mine = "session_id = ?", (source.key,)
        abouts = (decoded(row[0]) for row in base.rows("messages", *mine, only=("metadata_json",), order="id"))
        last_hidden, ledger = _last_hidden(abouts), list[dict[str, Any]]()
        if base.has("usage_ledger", "id", "session_id"):
            ledger = [dict(row) for row in base.rows("usage_ledger", *mine, order="id")]
    for key in ("model_config_json", "recipe_json"):
        info[key.removesuffix("_json")] = decoded(info.get(key))
    return _StoredSession(info, _messages(source, problems), last_hidden, ledger)


def _messages(source: Source, problems: Problems) -> Iterator[dict[str, Any]]:
    with read_from(source, problems) as base:
        for row in base.rows("messages", "session_id = ?", (source.key,), order="id"):
            raw: dict[str, Any] = dict(row)
            content = decoded(raw.get("content_json"))
            if content is None:
                report(problems, "a message that is not JSON", where=f"message {raw.get('id')}")
            yield {
                "id": raw.get("message_id"), "role": raw.get("role"), "content": content,
                "created": raw.get("created_timestamp"), "metadata": decoded(raw.get("metadata_json")),
            }  # fmt: skip


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
    reading = Reading(header=header, steps=_steps(shelf, problems), problems=problems)
    model = text(fields(info.get("model_config")).get("model_name"))
    reading.facts |= without_none({
        "model": model, "provider": text(info.get("provider_name")), "goose.recipe": info.get("recipe"),
        "permission_mode": text(info.get("goose_mode")), "archived": True if info.get("archived_at") else None,
    })  # fmt: skip
    # What its totals say beyond its requests is from before those were noted one by one.
    booked = sum((_usage(row, "", "cost") for row in shelf.ledger), Usage())
    total = _usage(info, "accumulated_", "accumulated_cost")
    cost = (total.cost_micros or 0) - (booked.cost_micros or 0)
    rest = replace(total.beyond(booked), cost_micros=cost if cost > 1 else None)  # less is what rounding left
    if rest != Usage():
        reading.totals[model or ""] = rest
    return reading


def _usage(raw: dict[str, Any], prefix: str, cost_name: str) -> Usage:
    """goose counts what a cache answered or took as input."""
    names = (f"{prefix}{name}_tokens" for name in ("input", "output", "cache_read", "cache_write"))
    return usage_in(raw, *names, cost=cost_name, input_includes_cache=True)


def _steps(shelf: _StoredSession, problems: Problems) -> Iterator[Step]:
    keys, used = Keys(), set[str]()
    was_hidden, summary = False, list[tuple[str, Message]]()
    for index, raw in enumerate(shelf.messages):
        id, about = text(raw.get("id")), fields(raw.get("metadata"))
        is_sent, is_shown = about.get("agentVisible") is not False, _is_shown(about)
        if summary and is_shown:
            yield _compaction(summary)
            summary = []
        for number, entry in enumerate(_entries(raw, about, problems)):
            key = f"{id}#{number}" if number else id
            if key is None or key in used:
                key = keys.of(entry)
            used.add(key)
            if not is_shown and was_hidden and isinstance(entry, Message):
                summary.append((key, entry))
                continue
            yield Record(entry=entry, key=key)
            if not is_sent and index > shelf.last_hidden and entry.is_node:
                # Kept from the model, and not because a summary stands for it.
                yield Record(entry=Edit(entry=0, at=entry.at), key=f"hidden {key}", names={"entry": key})
        was_hidden = was_hidden or not is_sent
    if summary:
        yield _compaction(summary)
    for row in shelf.ledger:
        why, at = "compaction" if row.get("is_compaction") else None, moment(row.get("created_timestamp"))
        entry = Spent(usage=_usage(row, "", "cost"), model=text(row.get("model")), why=why, at=at)
        yield Record(entry=entry, key=f"request {row.get('id')}")


def _compaction(summary: list[tuple[str, Message]]) -> Record:
    first = summary[0][1]
    messages = [replace(message, at=None, display=None) for _, message in summary]
    return Record(entry=Compaction(replacement=list(messages), at=first.at), key=f"compaction {summary[0][0]}")


def _entries(raw: dict[str, Any], about: dict[str, Any], problems: Problems) -> list[Message | Note]:
    """A message of goose: what tools answered, what was said, or what only people see."""
    role, at, parts = raw.get("role"), moment(raw.get("created")), as_list(raw.get("content"))
    aside = [fields(part) for part in parts if fields(part).get("type") in _ASIDE]
    rest = [part for part in parts if fields(part).get("type") not in _ASIDE]
    if role not in ("user", "assistant"):
        return [of_unknown_role(role, parts, at, problems)]
    if aside and not rest:
        words = next((text(part.get("msg")) for part in aside if part.get("msg")), None)
        return [Note(text=words or str(aside[0]["type"]), data=aside, at=at)]
    results: list[AnyBlock] = [_result(fields(part)) for part in rest if fields(part).get("type") == "toolResponse"]
    blocks = [_block(part) for part in rest if fields(part).get("type") != "toolResponse"]
    return [*results_apart(
        role, results, blocks, at, display=None if _is_shown(about) else False,
        model=text(fields(about.get("inference")).get("model")), meta={"aside": aside} if aside else None,
    )]  # fmt: skip


def _block(raw: Any) -> AnyBlock:
    part = fields(raw)
    kind = part.get("type")
    if kind in ("toolRequest", "frontendToolRequest"):
        value = fields(fields(part.get("toolCall")).get("value"))
        if text(value.get("name")) is not None and isinstance(part.get("id"), str):
            return ToolCall(id=part["id"], name=value["name"], input=value.get("arguments"))
    elif kind == "image" and (picture := from_base64(part.get("data"))) is not None:
        return Image(media_type=text(part.get("mimeType")), data=picture)
    return usual(part) or unknown(_NAME, raw)


def _result(part: dict[str, Any]) -> ToolResult:
    answer = fields(part.get("toolResult"))
    value, error = answer.get("value"), answer.get("error")
    content: Any = as_list(value) if isinstance(value, list) else fields(value).get("content")
    is_error = answer.get("status") == "error" or fields(value).get("isError") is True
    reply: str | list[AnyBlock] = error if isinstance(error, str) else ""
    if isinstance(content, list):
        blocks = [_block(inner) for inner in as_list(content)]
        reply = blocks[0].text if len(blocks) == 1 and isinstance(blocks[0], Text) else blocks
    elif value is not None and not reply:
        reply = json_text(value)
    return ToolResult(call=str(part.get("id") or ""), content=reply, is_error=is_error)


FORMAT = Format(
    "goose: its database, JSON lines of earlier versions, exports",
    _homes,
    _find,
    _read,
    resume=resume_command("goose", "session", "--resume", "--session-id", "ID", ids=r"\d{8}_\d{1,9}"),
    watch=Watching(by_file=True),
)
