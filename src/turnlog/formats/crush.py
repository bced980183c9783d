"""Crush: a database per project, `<project>/.crush/crush.db`, named in `~/.local/share/crush/projects.json`. Only read.

Times are seconds. What its tables count as tokens is the size of the last request; what was spent is the cost alone,
and a session's has that of its subagents in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any

from turnlog.formats import Format, Places, Reading, Record, SessionHeader, Source, Spawn, Step, Watching
from turnlog.formats._shared.blocks import thinking, unknown
from turnlog.formats._shared.finding import folder_of, opened_for, read_from, resume_command, sessions_in
from turnlog.formats._shared.origin import of_unknown_role
from turnlog.interop.base64 import from_base64
from turnlog.interop.folder import files_under, is_plain_file
from turnlog.interop.json import decoded, json_or_text
from turnlog.interop.problem import Problems, report
from turnlog.interop.records import load_sidecar
from turnlog.interop.sqlite import ERRORS, is_database, opened
from turnlog.interop.value import as_list, fields, items, micros, moment, text
from turnlog.log.block import AnyBlock, File, Image, Text, ToolCall, ToolResult
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
    base = folder_of(places, "XDG_DATA_HOME", ".local/share")
    folders = [places.environ.get("CRUSH_GLOBAL_DATA") or os.path.join(base, "crush")]
    if places.workspace is not None:
        folders.append(os.path.join(places.workspace, _FOLDER))
    return folders


def _find(path: str) -> Iterator[Source]:
    columns = {"messages": ("id", "session_id", "role", "parts"), "sessions": ("id", "parent_session_id", "title")}
    for file in files_under(path):
        databases = _projects(file) if os.path.basename(file) == _PROJECTS else [file]
        for database in databases:
            if database.endswith(".db") and is_database(database, **columns):
                yield from sessions_in(_NAME, database, "sessions", "created_at")


def _projects(path: str) -> list[str]:
    """The databases of the projects that a list names; those of folders that are gone are none."""
    projects = items(fields(load_sidecar(path, [])).get("projects"))
    folders = [text(project.get("data_dir")) for project in projects[:_MOST]]
    files = [os.path.join(folder, _FILE) for folder in folders if folder and os.path.isabs(folder)]
    return [file for file in dict.fromkeys(files) if "\0" not in file and is_plain_file(file)]


def stamps(path: str) -> dict[str, str]:
    """Of each session: when it and its messages last changed, and how much they say, for many change in one second."""
    try:
        with opened(path) as base:
            stamps = {str(row["id"]): str(tuple(row)) for row in base.rows("sessions")}
            sql = "select session_id, count(*), sum(length(parts)) from messages group by session_id"
            for id, *times in base.ask(sql):
                stamps[str(id)] = f"{stamps.get(str(id))} {times}"
            return stamps
    except (OSError, *ERRORS):
        return {}


def _read(source: Source) -> Reading:
    problems: Problems = []
    with opened_for(source) as base:
        info = base.row("sessions", "id = ?", (source.key,))
        mine, names = "session_id = ? and role = 'assistant'", ("model", "provider")
        last = base.row("messages", mine, (source.key,), only=names, order="rowid desc")
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
    reading = Reading(header=header, steps=_steps(source, problems), problems=problems)
    reading.facts |= {name: last[name] for name in names if text(last.get(name))}
    cost = micros(info.get("cost"))
    if cost is not None and parent is None:
        reading.totals[text(last.get("model")) or ""] = Usage(cost_micros=cost)
    return reading


def _steps(source: Source, problems: Problems) -> Iterator[Step]:
    with read_from(source, problems) as base:
        order = "created_at, rowid" if base.has("messages", "created_at") else "rowid"
        rows = base.rows("messages", "session_id = ?", (source.key,), order=order)
        for row, after in pairwise(chain(rows, [None])):
            if row is not None:
                yield _record(dict(row), problems, is_last=after is None)


def _record(row: dict[str, Any], problems: Problems, *, is_last: bool) -> Record:
    id, at, role = str(row.get("id")), moment(row.get("created_at")), row.get("role")
    raw = decoded(row.get("parts"))
    if not isinstance(raw, list):
        report(problems, "parts that are no list", where=f"message {id:.80}")
    parts = as_list(raw)
    ends = [fields(part.get("data")) for part in items(parts) if part.get("type") == "finish"]
    blocks = [_block(part, row) for part in parts if fields(part).get("type") != "finish"]
    if role not in ("user", "assistant", "tool", "system"):
        return Record(entry=of_unknown_role(role, parts, at, problems), key=id)
    if role != "assistant":
        return Record(entry=Message(role=role, blocks=blocks, at=at), key=id)
    end = ends[-1] if ends else {}
    reason, model = text(end.get("reason")), text(row.get("model"))
    if not ends and is_last:  # it is being written, or was when Crush ended: all of it comes with its end
        prompt = " ".join(block.text for block in blocks if isinstance(block, Text))
        return Record(entry=Note(text=f"an answer without its end: {prompt}", at=at), key=f"begun {id}")
    if row.get("is_summary_message"):
        if reason in ("error", "canceled"):
            return Record(entry=Note(text="a summary that failed", data=end, at=at), key=id)
        summary = [Message(role="user", blocks=[block for block in blocks if isinstance(block, Text)])]
        return Record(entry=Compaction(replacement=list(summary), model=model, at=at), key=id)
    stop = _STOPS.get(reason)
    error = {key: end[key] for key in ("message", "details") if text(end.get(key))} if stop == "error" else None
    return Record(entry=Message(role=role, blocks=blocks, at=at, model=model, stop=stop, error=error or None), key=id)


def _block(raw: Any, row: dict[str, Any]) -> AnyBlock:
    data = fields(fields(raw).get("data"))
    match fields(raw).get("type"):
        case "text" if isinstance(data.get("text"), str):
            return Text(text=data["text"])
        case "reasoning" if isinstance(data.get("thinking"), str):
            return thinking(data["thinking"], data.get("signature") if row.get("provider") == "anthropic" else None)
        case "tool_call" if text(data.get("id")) and text(data.get("name")):
            by = "provider" if data.get("provider_executed") is True else None
            return ToolCall(id=data["id"], name=data["name"], input=json_or_text(data.get("input")), by=by)
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
    output: Any = data.get("content") if isinstance(data.get("content"), str) else ""
    seen = _bytes(data.get("data"), text(data.get("mime_type")), None) if text(data.get("data")) else None
    return ToolResult(
        call=str(data.get("tool_call_id") or ""),
        name=text(data.get("name")),
        content=output if seen is None else [*([Text(text=output)] if output else []), seen],
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
    resume=resume_command("crush", "--session", "ID"),
    watch=Watching(by_file=True, stamps=stamps),
)
