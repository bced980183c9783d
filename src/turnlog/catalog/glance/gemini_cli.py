"""Gemini CLI at a glance."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import Any

from turnlog.catalog.glance.ends import FileEnds, SessionGlance, fields_in, ms_in, objects_in, preview_in, text_in

_MARK = '"projectHash"'
_HEADER = re.compile(r'"(sessionId|startTime|kind)": ?"([^"\\]*)"')
_PROMPT = re.compile(r'"type": ?"user",\s*"content": ?("(?:[^"\\]|\\.)*"|\[\s*\{\s*"text": ?("(?:[^"\\]|\\.)*"))')


def is_session_name(name: str) -> bool:
    """Whether a file may be a session, judged by its name."""
    return name.endswith((".json", ".jsonl")) and name not in ("logs.json", "checkpoint.json", "todos.json")


def glance(path: str, size: int) -> SessionGlance | None:
    """What the two ends of a file show; None if it is no session."""
    ends = FileEnds(path, size)
    header, preview = _document(ends) if path.endswith(".json") else _log(ends)
    if not text_in(header.get("sessionId")):
        return None  # also what resuming leaves behind, in which nobody says anything
    folder = os.path.dirname(path)
    is_side = header.get("kind") == "subagent"
    parent = os.path.basename(folder)
    return SessionGlance(
        native=header["sessionId"],
        workspace=_root(folder),
        title=text_in(header.get("summary")),
        preview=preview,
        created_ms=ms_in(header.get("startTime")),
        updated_ms=ends.last_time(),
        parent=parent if is_side and parent != "chats" else None,
        is_hidden=is_side,
    )


def _log(ends: FileEnds) -> tuple[dict[str, Any], str]:
    header: dict[str, Any] = {}
    preview = ""
    records = list(ends.records())
    if not any("type" in record for record in records):
        return {}, ""
    for record in records:
        changed = fields_in(record.get("$set"))
        for message in [record, *objects_in(changed.get("messages"))]:
            if message.get("type") == "user" and not preview:
                preview = preview_in(message.get("displayContent") or message.get("content"))
        header.update(changed if "$set" in record else record if "sessionId" in record and "type" not in record else {})
    for record in ends.records_with(b'"summary"'):
        header.update(fields_in(record.get("$set")))
    return header, preview


def _document(ends: FileEnds) -> tuple[dict[str, Any], str]:
    """The fields at the beginning of a document, and its first prompt: parsing it would need all of it."""
    head = ends.head.decode(errors="replace")
    if _MARK not in head and '"sessionId"' not in head:
        return {}, ""
    header: dict[str, Any] = {key: value for key, value in reversed(_HEADER.findall(head))}
    summary = re.search(r'"summary": ?("(?:[^"\\]|\\.)*")', ends.tail.decode(errors="replace"))
    if summary:
        header["summary"] = _string(summary[1])
    for match in _PROMPT.finditer(head):
        preview = preview_in(_string(match[2] or match[1]))
        if preview:
            return header, preview
    return header, ""


def _string(literal: str) -> str:
    """A string of a JSON document; "" if it has an escape that JSON does not have."""
    from json import loads

    try:
        return loads(literal, strict=False)
    except ValueError:
        return ""


@lru_cache(maxsize=64)
def _root(folder: str) -> str | None:
    for _ in range(3):
        try:
            with open(os.path.join(folder, ".project_root"), encoding="utf-8") as file:
                return text_in(file.read(4096).strip())
        except (OSError, UnicodeDecodeError):
            folder = os.path.dirname(folder)
    return None
