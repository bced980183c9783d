"""What the first record of a rollout says of the session, and where its neighbours lie."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from turnlog.formats import Forked, SessionHeader, Source, Spawn
from turnlog.interop.copied import copied_in
from turnlog.interop.folder import files_under, names_in
from turnlog.interop.jsonline import lines
from turnlog.interop.records import first_records, record_in, report_unreadable
from turnlog.interop.value import branches_in, fields, moment, text

NAME = "codex"
_HEAD = 20
_NEAR = 5000
"""So many files are looked at, at most, to find the one a fork comes from."""


def first_meta(path: str) -> dict[str, Any] | None:
    """The first `session_meta`, which alone counts, or the header of 2025; None for a file of another kind."""
    for record in first_records(path, _HEAD):
        payload = record.get("payload")
        if record.get("type") == "session_meta" and isinstance(payload, dict):
            return {"timestamp": record.get("timestamp"), **fields(payload)}
        if record.keys() >= {"id", "timestamp", "instructions"} and "type" not in record:
            return record
        if record.get("type") in ("response_item", "event_msg", "turn_context") and isinstance(payload, dict):
            return {"timestamp": record.get("timestamp")}  # its beginning is missing
    return None


def heading(source: Source) -> SessionHeader:
    """See `turnlog.formats.SessionHeader`."""
    meta = first_meta(source.path) or {}
    stem = os.path.basename(source.path).removesuffix(".zst").removesuffix(".jsonl")
    base = fields(meta.get("history_base"))
    parent = text(base.get("thread_id")) or text(meta.get("forked_from_id"))
    return SessionHeader(
        id=text(meta.get("id")) or stem,
        workspace=text(meta.get("cwd")),
        created=moment(meta.get("timestamp")),
        title=_named(source.path, str(meta.get("id"))),
        fork=Forked(parent, source=_beside(source.path, parent)) if parent else None,
        spawned=_spawned(meta),
        hidden=_spawned(meta) is not None,
        copied=copied_in(meta),
        git_branches=branches_in(fields(meta.get("git")).get("branch")),
        origin={key: meta[key] for key in _KEPT if meta.get(key) is not None} or None,
    )


_KEPT = ("originator", "cli_version", "source", "model_provider", "git", "history_mode", "memory_mode", "instructions")


def _spawned(meta: dict[str, Any]) -> Spawn | None:
    about = fields(meta.get("source")).get("subagent")
    spawn = fields(fields(about).get("thread_spawn"))
    parent = text(meta.get("parent_thread_id")) or text(spawn.get("parent_thread_id"))
    if parent is None:
        return None
    return Spawn(parent, role=text(meta.get("agent_role")) or text(spawn.get("agent_role")))


def _home(path: str) -> str:
    """The folder of Codex that a rollout lies in; "" if it lies elsewhere."""
    parts = os.path.abspath(path).split(os.sep)
    for name in ("sessions", "archived_sessions"):
        if name in parts:
            return os.sep.join(parts[: len(parts) - 1 - parts[::-1].index(name)])
    return ""


def _named(path: str, id: str) -> str | None:
    """The name that people gave it; of several the last."""
    index = os.path.join(_home(path), "session_index.jsonl")
    if not _home(path) or not os.path.isfile(index):
        return None
    records = (record_in(line.data) for line in report_unreadable(lines(index), [], index) if id.encode() in line.data)
    names = [text(record.get("thread_name")) for record in records if record.get("id") == id]
    return names[-1] if names else None


def _beside(path: str, id: str) -> Source | None:
    """The file of another session: by its name, or among the neighbours by what is in it."""
    for other in _neighbours(path):
        if id in os.path.basename(other):
            return Source(NAME, other)
    folder = os.path.dirname(os.path.abspath(path))
    for name in names_in(folder)[: _NEAR + 1]:
        other = os.path.join(folder, name)
        if is_rollout(name) and other != os.path.abspath(path) and (first_meta(other) or {}).get("id") == id:
            return Source(NAME, other)
    return None


def _neighbours(path: str) -> Iterator[str]:
    home = _home(path)
    for name in ("sessions", "archived_sessions") if home else ():
        yield from filter(is_rollout, files_under(os.path.join(home, name)))


def is_rollout(name: str) -> bool:
    """Whether a file may be one, by its name."""
    return name.endswith((".jsonl", ".jsonl.zst"))
