"""Where sofos keeps its sessions: a folder of files, an index of them, and a lock for whoever changes both."""

from __future__ import annotations

import os
from typing import Any, cast

from turnlog.errors import Unavailable
from turnlog.formats import Rendered
from turnlog.formats._shared.finding import names_in, workspace_over
from turnlog.formats._shared.json import decode, document
from turnlog.formats._shared.place import Taken, locked, put_file, safe_name
from turnlog.formats._shared.rust import pretty, trimmed
from turnlog.formats._shared.value import fields, listed

INDEX = "index.json"
LOCK = ".save.lock"
_WAIT_S = 60.0
_PREVIEW = 120


def preview_of(messages: list[Any]) -> str:
    """The first thing a person said, without the white space around it, cut to 120 characters."""
    for item in messages:
        message = fields(item)
        if message.get("role") != "user":
            continue
        text = trimmed(_text(message.get("content")))
        if text:
            return text if len(text) <= _PREVIEW else text[:_PREVIEW] + "..."
    return "Empty session"


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    for item in listed(content):
        block = fields(item)
        if block.get("type") == "text":
            text = block.get("text")
            return text if isinstance(text, str) else ""
    return ""


def row_of(session: dict[str, Any]) -> dict[str, Any]:
    """The row of a session in the index."""
    messages = listed(session.get("api_messages"))
    return {
        "id": session["id"], "preview": preview_of(messages), "created_at": session["created_at"],
        "updated_at": session["updated_at"], "message_count": len(messages),
    }  # fmt: skip


def place(written: Rendered, folder: str, *, force: bool = False) -> str:
    """Save as sofos would: file first, then index, both under its lock. `folder` is its folder of sessions.

    An index that is damaged or missing is made anew from the sessions that are there.
    """
    output = written.files[0]
    name = safe_name(output.path)
    path = os.path.join(folder, name)
    busy = Unavailable(f"sofos has {folder} locked", hint="try again")
    with locked(os.path.join(folder, LOCK), busy, wait_s=_WAIT_S):
        if not force and os.path.lexists(path):
            raise Taken(path)
        put_file(path, output.data, mode=output.mode, force=force)
        rows = _rows(folder)
        mine = cast("dict[str, Any]", written.about)
        places = [index for index, row in enumerate(rows) if row["id"] == mine["id"]]
        if places:
            rows[places[0]] = {**rows[places[0]], **mine}
            rows = [row for index, row in enumerate(rows) if index not in places[1:]]
        else:
            rows.append(mine)
        rows.sort(key=lambda row: row["updated_at"], reverse=True)
        put_file(os.path.join(folder, INDEX), pretty({"sessions": rows}), force=True)
    return path


def _rows(folder: str) -> list[dict[str, Any]]:
    """The rows of the index; where it cannot be read, one for each session in the folder."""
    try:
        data, _ = document(os.path.join(folder, INDEX))
        value = decode(data)
    except (OSError, ValueError):
        value = None
    rows = fields(value).get("sessions")
    if isinstance(rows, list) and all(map(_is_row, listed(rows))):
        return listed(rows)
    return [row for name in session_files(folder) if (row := _row_at(os.path.join(folder, name))) is not None]


def _is_row(row: Any) -> bool:
    kinds = {"id": str, "preview": str, "created_at": int, "updated_at": int, "message_count": int}
    return all(isinstance(fields(row).get(name), kind) for name, kind in kinds.items())


def _row_at(path: str) -> dict[str, Any] | None:
    """The row of a session that sofos itself could load; it would stumble over any other."""
    try:
        data, _ = document(path)
        session = decode(data)
        row = row_of(fields(session))
    except (OSError, ValueError, KeyError):
        return None
    stem = os.path.basename(path).removesuffix(".json")
    return row if _is_row(row) and row["id"] == stem else None


def session_files(folder: str) -> list[str]:
    """The names of what can be sessions in a folder: not the index, not the remains of a save."""
    return [name for name in names_in(folder) if name.endswith(".json") and name != INDEX and not name.startswith(".")]


def workspace_of(path: str) -> str | None:
    """The folder that the `.sofos/sessions` of a session lies in."""
    return workspace_over(os.path.dirname(os.path.abspath(path)), ".sofos", "sessions")
