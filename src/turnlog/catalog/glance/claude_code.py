"""Claude Code at a glance."""

from __future__ import annotations

import os
from typing import Any

from turnlog.catalog.glance.ends import FileEnds, SessionGlance, fields_in, ms_in, preview_in, stem_of, text_in

_CHAIN = ("user", "assistant", "system", "attachment", "progress")
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
_BEGINNING = 40


def is_session_name(name: str) -> bool:
    """Whether a file may be a session, judged by its name."""
    return name.endswith(".jsonl")


def glance(path: str, size: int) -> SessionGlance | None:
    """What the two ends of a file show; None if it is no session."""
    ends = FileEnds(path, size)
    first: dict[str, Any] = {}
    titles: dict[str, str] = {}
    preview, workspace, created = "", None, None
    for number, record in enumerate(ends.records()):
        kind = record.get("type")
        if kind not in _CHAIN:
            continue
        if not first:
            if number >= _BEGINNING or not _is_chained(record):
                break
            first = record
        workspace = workspace or text_in(record.get("cwd"))
        created = created if created is not None else ms_in(record.get("timestamp"))
        if kind == "user" and not preview and not _is_aside(record):
            preview = preview_in(fields_in(record.get("message")).get("content"))
        if preview and workspace and created is not None:
            break
    if not first:
        return None
    for record in ends.records_with(b'-title"', b'"type":"summary"'):
        _note_title(record, titles)
    stem = stem_of(path)
    is_side = first.get("isSidechain") is True and stem.startswith("agent-")
    return SessionGlance(
        native=stem,
        workspace=workspace,
        title=titles.get("custom-title") or titles.get("ai-title") or titles.get("summary"),
        preview=preview,
        created_ms=created,
        updated_ms=ends.last_time(),
        fork=text_in(fields_in(first.get("forkedFrom")).get("sessionId")),
        parent=_parent(path, str(first.get("sessionId"))) if is_side else None,
        is_hidden=is_side,
    )


def _is_chained(record: dict[str, Any]) -> bool:
    message = fields_in(record.get("message"))
    is_other = "parts" in message or "systemPayload" in record  # qwen-code's
    is_whole = isinstance(record.get("sessionId"), str) and "uuid" in record
    return is_whole and not is_other and ("parentUuid" in record or "role" in message)


def _is_aside(record: dict[str, Any]) -> bool:
    return bool(record.get("isMeta") or record.get("isVisibleInTranscriptOnly") or record.get("isCompactSummary"))


def _note_title(record: dict[str, Any], titles: dict[str, str]) -> None:
    kind = str(record.get("type"))
    title = record.get(_TITLES.get(kind, ""))
    if isinstance(title, str) and title.strip():
        titles[kind] = title.strip()


def _parent(path: str, session: str) -> str:
    parts = os.path.abspath(path).split(os.sep)
    return parts[parts.index("subagents") - 1] if "subagents" in parts else session
