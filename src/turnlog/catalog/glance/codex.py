"""Codex at a glance."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

from turnlog.catalog.glance.ends import (
    FileEnds,
    SessionGlance,
    fields_in,
    ms_in,
    preview_in,
    record_in,
    stem_of,
    text_in,
)

_BEGINNING = 20
_OTHERS = ("response_item", "event_msg", "turn_context")


def is_session_name(name: str) -> bool:
    """Whether a file may be a session, judged by its name."""
    return name.endswith((".jsonl", ".jsonl.zst"))


def glance(path: str, size: int) -> SessionGlance | None:
    """What the two ends of a file show; None if it is no session. A compressed file shows only its name."""
    if path.endswith(".zst"):
        return SessionGlance(stem_of(path)[-36:])
    ends = FileEnds(path, size)
    meta: dict[str, Any] | None = None
    preview = ""
    for number, record in enumerate(ends.records()):
        if meta is None:
            if number >= _BEGINNING:
                return None
            meta = _meta(record)
        elif preview := _prompt_of(record):
            break
    if meta is None:
        return None
    source = fields_in(fields_in(meta.get("source")).get("subagent"))
    parent = text_in(meta.get("parent_thread_id")) or text_in(
        fields_in(source.get("thread_spawn")).get("parent_thread_id")
    )
    native = text_in(meta.get("id")) or stem_of(path)
    return SessionGlance(
        native=native,
        workspace=text_in(meta.get("cwd")),
        title=_names(_home(path)).get(native),
        preview=preview,
        created_ms=ms_in(meta.get("timestamp")),
        updated_ms=ends.last_time(),
        fork=text_in(fields_in(meta.get("history_base")).get("thread_id")) or text_in(meta.get("forked_from_id")),
        parent=parent,
        is_hidden=parent is not None,
    )


def _meta(record: dict[str, Any]) -> dict[str, Any] | None:
    payload: object = record.get("payload")
    if record.get("type") == "session_meta" and isinstance(payload, dict):
        return {"timestamp": record.get("timestamp"), **fields_in(record["payload"])}
    if record.keys() >= {"id", "timestamp", "instructions"} and "type" not in record:
        return record
    if record.get("type") in _OTHERS and isinstance(payload, dict):
        return {"timestamp": record.get("timestamp")}
    return None


def _prompt_of(record: dict[str, Any]) -> str:
    item = fields_in(record.get("payload")) if record.get("type") == "response_item" else record
    if item.get("type") != "message" or item.get("role") != "user":
        return ""
    return preview_in(item.get("content"))


def _home(path: str) -> str:
    parts = path.split(os.sep)
    for name in ("sessions", "archived_sessions"):
        if name in parts:
            return os.sep.join(parts[: len(parts) - 1 - parts[::-1].index(name)])
    return ""


@lru_cache(maxsize=8)
def _names(home: str) -> dict[str, str]:
    """The names that people gave to sessions, by their ids."""
    names: dict[str, str] = {}
    try:
        with open(os.path.join(home, "session_index.jsonl"), "rb") as file:
            for line in file:
                record = record_in(line)
                if text_in(record.get("id")) and text_in(record.get("thread_name")):
                    names[record["id"]] = record["thread_name"]
    except OSError:
        return names
    return names
