"""The first records of a transcript in the order in which they hang on each other.

On a terminal the first answer, and what came of it, may be in the file before what was asked: what a session begins
with is only written once there is an answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from turnlog.formats import Problem
from turnlog.formats._shared.value import fields, items
from turnlog.formats.claude_code.line import ClaudeAnswer, ClaudeLine

_MOST = 64
"""So many records are waited with: then it is the beginning that is lost."""


def in_order(records: Iterator[tuple[int, Any]], problems: list[Problem]) -> Iterator[tuple[int, Any]]:
    """The same records; what hangs on a later one comes behind that. Where none comes, it is told and left out."""
    early: list[tuple[int, Any]] = []
    waiting: set[str] = set()
    wanted = ""
    for offset, record in records:
        uuid, parent = _link(record)
        is_early = uuid and parent and (parent in waiting if early else type(record) is ClaudeAnswer)
        if is_early and len(early) < _MOST and not _is_asked(record):
            wanted = wanted or parent
            waiting.add(uuid)
            early.append((offset, record))
            continue
        if is_early:
            yield from early
            early.clear()
        yield offset, record
        if uuid and uuid == wanted:
            yield from early
            early.clear()
        if uuid and not early:
            break
    yield from records
    if early:
        problems.append(Problem(f"{len(early)} records hang on one that is not there yet: they were left out"))


def _is_asked(record: Any) -> bool:
    """Whether somebody goes on with the conversation there."""
    if type(record) is not ClaudeLine:
        return False
    content = record.message.content
    return isinstance(content, str) or not any(item.get("type") == "tool_result" for item in items(content))


def _link(record: Any) -> tuple[str, str]:
    """The id of a record, and of the one that it hangs on."""
    if isinstance(record, dict):
        whole = fields(record)
        uuid, parent = whole.get("uuid"), whole.get("parentUuid")
    else:
        uuid, parent = record.uuid, record.parent
    return uuid if isinstance(uuid, str) else "", parent if isinstance(parent, str) else ""
