"""What the first records of a transcript say of the session."""

from __future__ import annotations

import os
from typing import Any

from turnlog.formats import Forked, Header, Source, Spawn
from turnlog.formats._json import salvage
from turnlog.formats._records import fields, moment, rows, text

CHAIN = ("user", "assistant", "system", "attachment", "progress")
_ENOUGH = 50


class Heading:
    """What the first records say of the session."""

    def __init__(self, source: Source) -> None:
        stem = os.path.basename(source.path).removesuffix(".jsonl")
        first: dict[str, Any] = {}
        self.is_side = bool(source.key)
        seen = 0
        for row in rows(source.path, []):
            record = row.data
            if record.get("type") not in CHAIN or (source.key and record.get("uuid") != source.key):
                continue
            first = first or record
            seen += 1
            if record.get("cwd") and record.get("timestamp"):
                first = {**record, **{key: value for key, value in first.items() if value is not None}}
                break
            if seen > _ENOUGH:
                break
        session = str(first.get("sessionId") or stem)
        spawned = None
        self.is_side = self.is_side or (first.get("isSidechain") is True and stem.startswith("agent-"))
        if self.is_side:
            spawned = _parent(source, session, stem)
            stem = f"{stem}.{source.key}" if source.key else stem
        fork = fields(first.get("forkedFrom"))
        self.header = Header(
            id=stem,
            workspace=text(first.get("cwd")),
            created=moment(first.get("timestamp")),
            spawned=spawned,
            hidden=self.is_side,
            fork=Forked(str(fork.get("sessionId") or "")) if fork else None,
            origin=_environment(first),
        )


def _environment(first: dict[str, Any]) -> dict[str, Any] | None:
    found = {key: first[key] for key in ("version", "gitBranch", "entrypoint") if isinstance(first.get(key), str)}
    return found or None


def _parent(source: Source, session: str, stem: str) -> Spawn:
    """The session that started this one: the folder around it is named after it."""
    if source.key:
        return Spawn(stem)
    meta: dict[str, Any] = {}
    try:
        with open(source.path.removesuffix(".jsonl") + ".meta.json", "rb") as file:
            meta = fields(salvage(file.read(1 << 20))[0])
    except OSError:
        pass  # the sidecar came with later versions
    parts = os.path.abspath(source.path).split(os.sep)
    parent = parts[parts.index("subagents") - 1] if "subagents" in parts else session
    call = next((meta[key] for key in ("toolUseId", "spawningToolUseId", "tool_use_id") if key in meta), None)
    return Spawn(parent, text(call), text(meta.get("agentType")))
