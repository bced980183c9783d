"""What a transcript says of the session as a whole: its first records, and those outside the conversation."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from turnlog.formats import Forked, SessionHeader, Source, Spawn
from turnlog.interop.copied import copied_in
from turnlog.interop.folder import names_in
from turnlog.interop.records import load_sidecar, report_unreadable, rows
from turnlog.interop.value import as_list, branches_in, fields, moment, text, token_count, usage_in
from turnlog.log.usage import Usage

CHAIN = ("user", "assistant", "system", "attachment", "progress")
_ENOUGH = 50
_NEAR = 5000
"""So many files are looked at, at most, to find the one a fork comes from."""
_QUIET = frozenset((
    "progress", "queue-operation", "last-prompt", "bridge-session", "started", "result", "frame-link", "atis-latch",
    "content-replacement", "file-history-delta", "agent-name", "worktree-state", "file-history-snapshot",
    "api-request", "api-request-blob", "api-request-shape", "tools-used",
))  # fmt: skip
"""Bookkeeping of the program."""
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
_FACTS = {
    "relocated": ("workspace", "relocatedCwd"),
    "permission-mode": ("permission_mode", "permissionMode", "mode"),
    "mode": ("mode", "permissionMode", "mode"),
}
"""Types of records that say one fact: its name with us, and the fields in which it may be."""


def heading(source: Source) -> SessionHeader:
    """What the first records say of the session."""
    stem = os.path.basename(source.path).removesuffix(".jsonl")
    first: dict[str, Any] = {}
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
    is_side = bool(source.key) or (first.get("isSidechain") is True and stem.startswith("agent-"))
    fork, written = _fork(source, first), moment(first.get("timestamp"))
    if fork is None and begun is not None and written is not None and begun > written:
        fork = _copied(source, str(first.get("uuid")), begun)
    return SessionHeader(
        id=f"{stem}.{source.key}" if source.key else stem,
        workspace=text(first.get("cwd")),
        created=written,
        spawned=_parent(source, str(first.get("sessionId") or stem), stem) if is_side else None,
        hidden=is_side,
        fork=fork,
        copied=copied_in(first),
        git_branches=branches_in(first.get("gitBranch")),
        origin={key: first[key] for key in ("version", "gitBranch", "entrypoint") if isinstance(first.get(key), str)}
        or None,
    )


def _fork(source: Source, first: dict[str, Any]) -> Forked | None:
    about = fields(first.get("forkedFrom"))
    id = text(about.get("sessionId")) or ""
    path = os.path.join(os.path.dirname(source.path), f"{os.path.basename(id)}.jsonl")
    return Forked(id, source=Source(source.agent, path) if id and os.path.isfile(path) else None) if about else None


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
    candidates: list[tuple[datetime, str]] = []
    for name in [name for name in names_in(folder, ".jsonl") if name != own][:_NEAR]:
        path = os.path.join(folder, name)
        head = [row.data for row in islice(report_unreadable(rows(path, []), [], path), _ENOUGH)]
        chain = [record for record in head if record.get("type") in CHAIN]
        times = [at for record in head if (at := moment(record.get("timestamp"))) is not None]
        if not times or not chain or chain[0].get("uuid") != first:
            continue  # one without a time in its beginning cannot be the oldest
        if any(row.data.get("uuid") == last for row in report_unreadable(rows(path, []), [], path)):
            candidates.append((times[0], path))
    if not candidates:
        return None
    path = min(candidates)[1]
    return Forked(os.path.basename(path).removesuffix(".jsonl"), source=Source(source.agent, path))


def _parent(source: Source, session: str, stem: str) -> Spawn:
    """The session that started this one: the folder around it is named after it."""
    if source.key:
        return Spawn(stem)
    # The sidecar came with later versions.
    meta = fields(load_sidecar(source.path.removesuffix(".jsonl") + ".meta.json", []))
    parts = os.path.abspath(source.path).split(os.sep)
    parent = parts[parts.index("subagents") - 1] if "subagents" in parts else session
    call = next((meta[key] for key in ("toolUseId", "spawningToolUseId", "tool_use_id") if key in meta), None)
    return Spawn(parent, text(call), text(meta.get("agentType")))


def take_facts(kind: str, record: dict[str, Any], facts: dict[str, Any], titles: dict[str, str]) -> bool:
    """Whether its type is known; what it says is in `facts` or `titles` then."""
    if kind in _TITLES:
        title = record.get(_TITLES[kind])
        if isinstance(title, str) and title.strip():
            titles[kind.removesuffix("-title")] = title.strip()
    elif kind == "tag":
        if isinstance(record.get("tag"), str):
            facts["tags"] = [record["tag"]] if record["tag"] else []
    elif kind in _FACTS:
        fact, *names = _FACTS[kind]
        value = next((record[name] for name in names if record.get(name)), None)
        if isinstance(value, str):
            facts[fact] = value
    elif kind == "pr-link":
        facts["pull_request"] = record.get("prUrl")
    elif kind == "cost-state":
        facts["reported_usage"] = {
            model: to_builtins(_spent(fields(spent))) for model, spent in fields(record.get("modelUsage")).items()
        }
    else:
        return kind in _QUIET
    return True


def cleared_calls(line: Mapping[str, Any]) -> list[str]:
    """The calls whose results Claude Code no longer sends, if it is that what a line says."""
    if line.get("type") != "system" or line.get("subtype") != "microcompact_boundary":
        return []
    names = fields(line.get("microcompactMetadata")).get("compactedToolIds")
    return [name for name in as_list(names) if isinstance(name, str)]


def _spent(usage: dict[str, Any]) -> Usage:
    cost, hour = usage.get("costUSD"), token_count(usage.get("cacheCreationEphemeral1hInputTokens"))
    names = ("outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "thinkingTokens")
    spent = usage_in(usage, "inputTokens", *names)
    return replace(
        spent,
        cache_write_tokens=max(0, spent.cache_write_tokens - hour),
        cache_write_1h_tokens=hour,
        cost_micros=round(cost * 1_000_000) if isinstance(cost, int | float) and 0 <= cost < 1e9 else None,
    )
