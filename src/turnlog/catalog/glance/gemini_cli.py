"""Gemini CLI at a glance."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import Any

from turnlog.catalog.glance.ends import FileEnds, SessionGlance, fields_in, ms_in, objects_in, preview_in, text_in

_MARK = b'"projectHash"'
_HEADER = re.compile(r'"(sessionId|startTime|kind)": ?"([^"\\]*)"')
_PROMPT = re.compile(r'"type": ?"user",\s*"content": ?("(?:[^"\\]|\\.)*"|\[\s*\{\s*"text": ?("(?:[^"\\]|\\.)*"))')


def is_session_name(name: str) -> bool:
    """Whether a file may be a session, by its name."""
    return name.endswith((".json", ".jsonl")) and name not in ("logs.json", "checkpoint.json", "todos.json")


def glance(path: str, size: int) -> SessionGlance | None:
    """What its two ends tell; None if it is no session."""
    ends = FileEnds(path, size)
    about, preview = _document(ends) if path.endswith(".json") else _log(ends)
    if not text_in(about.get("sessionId")):
        return None  # also what resuming leaves behind, in which nobody says anything
    folder = os.path.dirname(path)
    is_side = about.get("kind") == "subagent"
    parent = os.path.basename(folder)
    return SessionGlance(
        native=about["sessionId"],
        workspace=_root(folder),
        title=text_in(about.get("summary")),
        preview=preview,
        created=ms_in(about.get("startTime")),
        updated=ends.last_time(),
        parent=parent if is_side and parent != "chats" else None,
        is_hidden=is_side,
    )


def _log(ends: FileEnds) -> tuple[dict[str, Any], str]:
    about: dict[str, Any] = {}
    preview = ""
    records = list(ends.records())
    if not any("type" in record for record in records):
        return {}, ""
    for record in records:
        changed = fields_in(record.get("$set"))
        for message in [record, *objects_in(changed.get("messages"))]:
            if message.get("type") == "user" and not preview:
                preview = preview_in(message.get("displayContent") or message.get("content"))
        about.update(changed if "$set" in record else record if "sessionId" in record and "type" not in record else {})
    for record in ends.marked(b'"summary"'):
        about.update(fields_in(record.get("$set")))
    return about, preview


def _document(ends: FileEnds) -> tuple[dict[str, Any], str]:
    """Its beginning, as far as it goes: all of it would have to be read to be parsed."""
    head = ends.head.decode(errors="replace")
    if _MARK.decode() not in head and '"sessionId"' not in head:
        return {}, ""
    from json import loads

    about: dict[str, Any] = {key: value for key, value in reversed(_HEADER.findall(head))}
    summary = re.search(r'"summary": ?("(?:[^"\\]|\\.)*")', ends.tail.decode(errors="replace"))
    if summary:
        about["summary"] = loads(summary[1], strict=False)
    for match in _PROMPT.finditer(head):
        preview = preview_in(loads(match[2] or match[1], strict=False))
        if preview:
            return about, preview
    return about, ""


@lru_cache(maxsize=64)
def _root(folder: str) -> str | None:
    for _ in range(3):
        try:
            with open(os.path.join(folder, ".project_root"), encoding="utf-8") as file:
                return text_in(file.read(4096).strip())
        except (OSError, UnicodeDecodeError):
            folder = os.path.dirname(folder)
    return None
