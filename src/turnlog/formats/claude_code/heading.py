"""What the first records of a transcript say of the session."""

from __future__ import annotations

import os
from datetime import datetime
from itertools import islice
from typing import Any

from turnlog.formats import Forked, SessionHeader, Source, Spawn
from turnlog.formats._shared.copied import copied_in
from turnlog.formats._shared.json import salvage
from turnlog.formats._shared.records import rows
from turnlog.formats._shared.value import fields, moment, text

CHAIN = ("user", "assistant", "system", "attachment", "progress")
_ENOUGH = 50
_NEAR = 5000
"""So many files are looked at, at most, to find the one a fork comes from."""


class ClaudeHeading:
    """What the first records say of the session."""

    def __init__(self, source: Source) -> None:
        stem = os.path.basename(source.path).removesuffix(".jsonl")
        first: dict[str, Any] = {}
        self.is_side = bool(source.key)
        seen, begun = 0, None
        for row in rows(source.path, []):
            record = row.data
            if not first and record.get("type") == "queue-operation":
                begun = begun or moment(record.get("timestamp"))
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
        fork, written = _fork(source, first), moment(first.get("timestamp"))
        if fork is None and begun is not None and written is not None and begun > written:
            fork = _copied(source, str(first.get("uuid")), begun)
        self.header = SessionHeader(
            id=stem,
            workspace=text(first.get("cwd")),
            created=moment(first.get("timestamp")),
            spawned=spawned,
            hidden=self.is_side,
            fork=fork,
            copied=copied_in(first),
            origin=_environment(first),
        )


def _fork(source: Source, first: dict[str, Any]) -> Forked | None:
    about = fields(first.get("forkedFrom"))
    id = text(about.get("sessionId")) or ""
    place = os.path.join(os.path.dirname(source.path), f"{os.path.basename(id)}.jsonl")
    return Forked(id, source=Source(source.agent, place) if id and os.path.isfile(place) else None) if about else None


def _copied(source: Source, first: str, begun: datetime) -> Forked | None:
    """A fork that says nowhere that it is one: it was begun after what it begins with, and its parent lies beside it.

    That is the oldest file that begins with the same record and has all that was copied.
    """
    last = ""
    for row in rows(source.path, []):
        at = moment(row.data.get("timestamp")) if row.data.get("type") in CHAIN else None
        if at is not None and at < begun:
            last = str(row.data.get("uuid"))
    folder, own = os.path.split(os.path.abspath(source.path))
    found: list[tuple[datetime, str]] = []
    for name in [name for name in sorted(os.listdir(folder)) if name.endswith(".jsonl") and name != own][:_NEAR]:
        place = os.path.join(folder, name)
        head = [row.data for row in islice(rows(place, []), _ENOUGH)]
        said = [record for record in head if record.get("type") in CHAIN]
        if said and said[0].get("uuid") == first and any(row.data.get("uuid") == last for row in rows(place, [])):
            times = [at for record in head if (at := moment(record.get("timestamp"))) is not None]
            found.append((times[0], place))
    if not found:
        return None
    place = min(found)[1]
    return Forked(os.path.basename(place).removesuffix(".jsonl"), source=Source(source.agent, place))


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
