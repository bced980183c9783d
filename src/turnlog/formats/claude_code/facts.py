"""What records outside the conversation say of the session as a whole."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from turnlog.formats._shared.value import count, fields
from turnlog.log.usage import Usage

_QUIET = frozenset((
    "progress", "queue-operation", "last-prompt", "bridge-session", "started", "result", "frame-link", "atis-latch",
    "content-replacement", "file-history-delta", "agent-name", "worktree-state", "file-history-snapshot",
    "api-request", "api-request-blob", "api-request-shape", "tools-used",
))  # fmt: skip
"""Bookkeeping of the program."""
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}


def take_facts(kind: str, record: dict[str, Any], facts: dict[str, Any], titles: dict[str, str]) -> bool:
    """Whether its type is known; what it says is in `facts` or `titles` then."""
    if kind in _TITLES:
        title = record.get(_TITLES[kind])
        if isinstance(title, str) and title.strip():
            titles[kind.removesuffix("-title")] = title.strip()
    elif kind == "tag":
        if isinstance(record.get("tag"), str):
            facts["tags"] = [record["tag"]] if record["tag"] else []
    elif kind == "relocated":
        if isinstance(record.get("relocatedCwd"), str):
            facts["workspace"] = record["relocatedCwd"]
    elif kind in ("permission-mode", "mode"):
        mode = record.get("permissionMode") or record.get("mode")
        if isinstance(mode, str):
            facts[kind.replace("-", "_")] = mode
    elif kind == "pr-link":
        facts["pull_request"] = record.get("prUrl")
    elif kind == "cost-state":
        facts["reported_usage"] = {
            model: to_builtins(_spent(fields(spent))) for model, spent in fields(record.get("modelUsage")).items()
        }
    else:
        return kind in _QUIET
    return True


def _spent(told: dict[str, Any]) -> Usage:
    cost, hour = told.get("costUSD"), count(told.get("cacheCreationEphemeral1hInputTokens"))
    return Usage(
        input_tokens=count(told.get("inputTokens")),
        cache_read_tokens=count(told.get("cacheReadInputTokens")),
        cache_write_tokens=max(0, count(told.get("cacheCreationInputTokens")) - hour),
        cache_write_1h_tokens=hour,
        output_tokens=count(told.get("outputTokens")),
        reasoning_tokens=count(told.get("thinkingTokens")),
        cost_micros=round(cost * 1_000_000) if isinstance(cost, int | float) and 0 <= cost < 1e9 else None,
    )
