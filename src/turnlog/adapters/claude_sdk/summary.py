"""The summary of a session, as the SDK makes it from its lines, and what of it becomes title and tags."""

from __future__ import annotations

from typing import Any, cast

from claude_agent_sdk import SessionKey, SessionStoreEntry, SessionSummaryEntry, fold_session_summary

from turnlog.adapters.claude_sdk.tail import Line
from turnlog.log.entry import AnyEntry, Set
from turnlog.log.item import expand, squeeze

_SUMMARY = "summary"


def summary_of(listed: dict[str, Any]) -> dict[str, Any] | None:
    """The summary in what listings have of a session; None if it has none yet."""
    summary = listed.get(_SUMMARY)
    return expand(summary, []) if isinstance(summary, dict) else None


def summary_facts(key: SessionKey, lines: list[Line], listed: dict[str, Any]) -> list[AnyEntry]:
    """The facts of a session that these lines change."""
    before = summary_of(listed) or {}
    previous: SessionSummaryEntry = {"session_id": key["session_id"], "mtime": 0, "data": before}
    summary = fold_session_summary(previous if before else None, key, cast("list[SessionStoreEntry]", lines))["data"]
    if summary == before:
        return []
    facts: list[AnyEntry] = [Set(key="listed", value={**listed, _SUMMARY: squeeze(summary, [])}, exact=True)]
    if (title := _title(summary)) != _title(before) and title:
        facts.append(Set(key="title", value=_as_unicode(title)))
    if summary.get("tag") != before.get("tag"):
        facts.append(Set(key="tags", value=[_as_unicode(summary["tag"])] if summary.get("tag") else []))
    return facts


def _title(summary: dict[str, Any]) -> Any:
    return summary.get("custom_title") or summary.get("ai_title")


def _as_unicode(text: Any) -> str:
    """A text with `?` for what is not Unicode."""
    return str(text).encode(errors="replace").decode()
