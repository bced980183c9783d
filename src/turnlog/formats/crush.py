"""Crush: a database per project, `<project>/.crush/crush.db`, named in `~/.local/share/crush/projects.json`. Only read.

Times are seconds. What its tables count as tokens is the size of the last request; what was spent is the cost alone,
and a session's has that of its subagents in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from turnlog.formats import (
    Format,
    Places,
    Problem,
    Reading,
    Record,
    Resuming,
    SessionHeader,
    Source,
    Spawn,
    Step,
    Watching,
)
from turnlog.formats._shared.finding import files_under, is_plain_file
from turnlog.formats._shared.foreign import unknown
from turnlog.formats._shared.json import decoded, from_base64
from turnlog.formats._shared.key import UUIDS
from turnlog.formats._shared.problem import of_unknown_role, tell
from turnlog.formats._shared.records import beside
from turnlog.formats._shared.sqlite import ERRORS, is_database, opened, opened_for, sessions_in
from turnlog.formats._shared.value import fields, items, listed, moment, text
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Compaction, Message, Note, Stop
from turnlog.log.usage import Usage

_NAME = "crush"
_FOLDER, _FILE, _PROJECTS = ".crush", "crush.db", "projects.json"
_MOST = 10_000
"""So many projects are looked for, of those that a list names."""
_UNNAMED = ("Untitled Session", "New Session")
_STOPS: dict[str | None, Stop] = {
    "end_turn": "end", "max_tokens": "length", "tool_use": "tool_use", "canceled": "aborted", "error": "error",
    "content_filter": "error",
}  # fmt: skip


def _homes(places: Places) -> list[str]:
    base = places.environ.get("XDG_DATA_HOME") or os.path.join(places.home, ".local", "share")
    folders = [places.environ.get("CRUSH_GLOBAL_DATA") or os.path.join(base, "crush")]
    if places.workspace is not None:
        folders.append(os.path.join(places.workspace, _FOLDER))
    return folders


def _find(path: str) -> Iterator[Source]:
    for place in files_under(path):
        if os.path.basename(place) == _PROJECTS:
            for database in _projects(place):
                yield from _in_database(database)
        elif place.endswith(".db"):
            yield from _in_database(place)


def _projects(path: str) -> list[str]:
    """The databases of the projects that a list names; those of folders that are gone are none."""
    projects = items(fields(beside(path, [])).get("projects"))
    folders = [text(project.get("data_dir")) for project in projects[:_MOST]]
    places = [os.path.join(folder, _FILE) for folder in folders if folder and os.path.isabs(folder)]
    return [place for place in dict.fromkeys(places) if "\0" not in place and is_plain_file(place)]


def _in_database(path: str) -> Iterator[Source]:
    columns = {"messages": ("id", "session_id", "role", "parts"), "sessions": ("id", "parent_session_id", "title")}
    if is_database(path, **columns):
        yield from sessions_in(_NAME, path, "sessions", "created_at")


def stamps(path: str) -> dict[str, str]:
    """Of each session: when it and its messages last changed, and how much they say, for many change in one second."""
    try:
        with opened(path) as base:
            stamps = {str(row["id"]): str(tuple(row)) for row in base.rows("sessions")}
            sql = "select session_id, count(*), sum(length(parts)) from messages group by session_id"
            for id, *times in base.ask(sql):
                stamps[str(id)] = f"{stamps.get(str(id))} {times}"
            return stamps
    except ERRORS:
        return {}


def _read(source: Source) -> Reading:
    problems: list[Problem] = []
    with opened_for(source) as base:
        session = next(base.rows("sessions", "id = ?", (source.key,)), None)
        info: dict[str, Any] = dict(session) if session is not None else {}
        named = {"model", "provider"} & set(base.columns.get("messages", ()))
        mine = "session_id = ? and role = 'assistant'"
        last = next(base.rows("messages", mine, (source.key,), only=tuple(named), order="rowid desc"), None)
    parent, title = text(info.get("parent_session_id")), text(info.get("title"))
    folder = os.path.dirname(source.path)
    header = SessionHeader(
        id=source.key,
        # Only the list of projects says for which folder a database elsewhere is.
        workspace=os.path.dirname(folder) if os.path.basename(folder) == _FOLDER else None,
        title=None if title in _UNNAMED else title,
        created=moment(info.get("created_at")),
        hidden=source.key.startswith("title-"),
        spawned=Spawn(parent, source.key.partition("$$")[2] or None) if parent else None,
    )
    reading = Reading(header=header, steps=iter(()), problems=problems)
    provider: dict[str, Any] = dict(last) if last is not None and named else {}
    for key in ("model", "provider"):
        if text(provider.get(key)):
            reading.facts[key] = provider[key]
    cost = info.get("cost")
    if isinstance(cost, (int, float)) and 0 < cost < 1e9 and parent is None:
        reading.totals[text(provider.get("model")) or ""] = Usage(cost_micros=round(cost * 1_000_000))
    reading.steps = _steps(source, problems)
    return reading


def _steps(source: Source, problems: list[Problem]) -> Iterator[Step]:
    try:
        with opened(source.path) as base:
            order = "created_at, rowid" if base.has("messages", "created_at") else "rowid"
            rows = base.rows("messages", "session_id = ?", (source.key,), order=order)
            before: dict[str, Any] | None = None
            for row in rows:
                if before is not None:
                    yield _record(before, problems, is_last=False)
                before = dict(row)
            if before is not None:
                yield _record(before, problems, is_last=True)
    except ERRORS as error:
        tell(problems, Problem(f"the database cannot be read any further: {error}"))


def _record(row: dict[str, Any], problems: list[Problem], *, is_last: bool) -> Record:
    id, at, role = str(row.get("id")), moment(row.get("created_at")), row.get("role")
    raw = decoded(row.get("parts"))
    if not isinstance(raw, list):
        tell(problems, Problem("parts that are no list", where=f"message {id:.80}"))
    parts = listed(raw)
    ends = [fields(part.get("data")) for part in items(parts) if part.get("type") == "finish"]
    blocks = [_block(part, row) for part in parts if fields(part).get("type") != "finish"]
    if role not in ("user", "assistant", "tool", "system"):
        return Record(entry=of_unknown_role(role, parts, at, problems), key=id)
    prompt = " ".join(block.text for block in blocks if isinstance(block, Text))
    if role != "assistant":
        return Record(entry=Message(role=role, blocks=blocks, at=at), key=id)
    end = ends[-1] if ends else {}
    reason = text(end.get("reason"))
    if not ends and is_last:  # it is being written, or was when Crush ended: all of it comes with its end
        return Record(entry=Note(text=f"an answer without its end: {prompt}", at=at), key=f"begun {id}")
    if row.get("is_summary_message"):
        if reason in ("error", "canceled"):
            return Record(entry=Note(text="a summary that failed", data=end, at=at), key=id)
        summary = [Message(role="user", blocks=[block for block in blocks if isinstance(block, Text)])]
        return Record(entry=Compaction(replacement=list(summary), model=text(row.get("model")), at=at), key=id)
    stop = _STOPS.get(reason)
    error = {key: end[key] for key in ("message", "details") if text(end.get(key))} if stop == "error" else None
    answer = Message(role=role, blocks=blocks, at=at, model=text(row.get("model")), stop=stop, error=error or None)
    return Record(entry=answer, key=id)


def _block(raw: Any, row: dict[str, Any]) -> AnyBlock:
    data = fields(fields(raw).get("data"))
    match fields(raw).get("type"):
        case "text" if isinstance(data.get("text"), str):
            return Text(text=data["text"])
        case "reasoning" if isinstance(data.get("thinking"), str):
            is_signed = row.get("provider") == "anthropic" and text(data.get("signature")) is not None
            signed = {"signature": data["signature"]} if is_signed else None
            return Thinking(text=data["thinking"], provider="anthropic" if is_signed else None, data=signed)
        case "tool_call" if text(data.get("id")) and text(data.get("name")):
            given = decoded(data.get("input"))
            by = "provider" if data.get("provider_executed") is True else None
            return ToolCall(
                id=data["id"], name=data["name"], input=data.get("input") if given is None else given, by=by
            )
        case "tool_result":
            return _result(data)
        case "image_url" if text(data.get("url")):
            return Image(url=data["url"])
        case "binary":
            return _bytes(data.get("Data"), text(data.get("MIMEType")), text(data.get("Path"))) or unknown(_NAME, raw)
        case "shell_command" if isinstance(data.get("command"), str):
            return Text(text=f"$ {data['command']}\n{text(data.get('output')) or ''}")
        case _:
            return unknown(_NAME, raw)


def _result(data: dict[str, Any]) -> ToolResult:
    output = data.get("content") if isinstance(data.get("content"), str) else ""
    seen = _bytes(data.get("data"), text(data.get("mime_type")), None) if text(data.get("data")) else None
    content: Any = output if seen is None else [*([Text(text=output)] if output else []), seen]
    return ToolResult(
        call=str(data.get("tool_call_id") or ""),
        name=text(data.get("name")),
        content=content,
        is_error=data.get("is_error") is True,
        details=decoded(data.get("metadata")),
    )


def _bytes(data: Any, kind: str | None, name: str | None) -> Image | File | None:
    make, content = Image if (kind or "").startswith("image/") else File, from_base64(data)
    return make(media_type=kind, name=name, data=content) if content is not None else None


FORMAT = Format(
    "Crush, as of 2025-04 to 2026-08",
    _homes,
    _find,
    _read,
    resume=Resuming(command=lambda id, path, workspace: ["crush", "--session", id], ids=UUIDS),
    watch=Watching(by_file=True, stamps=stamps),
)
