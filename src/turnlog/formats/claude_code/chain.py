"""The links of a transcript, which of its ends the conversation is at, and its first records in their order.

A file of a gigabyte has some 300,000 of them, so they lie in flat arrays. Objects that refer to each other would take
more room, and a chain of that length cannot be freed by CPython without exhausting the stack.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any

from turnlog.formats import Problem
from turnlog.formats._shared.value import fields, items
from turnlog.formats.claude_code.line import ClaudeAnswer, ClaudeLine

_SAID, _LIVE, _NAMED = 1, 2, 4


class Chain:
    """Every record that has a place in the tree, in the order of the file. What it hangs on always comes before it."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._leaves = array("i")
        """For each the nearest record at or above it in which somebody spoke; -1 for none."""
        self._flags = bytearray()
        self._keys: list[str] = []

    def __contains__(self, uuid: object) -> bool:
        return uuid in self._numbers

    def hang(self, uuid: str, parent: str, key: str, *, said: bool = False, live: bool = False) -> None:
        """Register a record below its parent; `key` is the node it belongs to."""
        above = self._numbers.get(parent, -1)
        if above >= 0:
            self._flags[above] |= _NAMED
        number = self._numbers[uuid] = len(self._keys)
        self._leaves.append(number if said else self._leaves[above] if above >= 0 else -1)
        self._flags.append((_SAID if said else 0) | (_LIVE if live else 0))
        self._keys.append(key)

    def place(self, uuid: str) -> str:
        """The key of the node here that a record stands for; "" for none."""
        number = self._numbers.get(uuid)
        return self._keys[number] if number is not None else ""

    def redirect(self, uuid: str, key: str) -> None:
        """Children of that record continue after another node."""
        self._keys[self._numbers[uuid]] = key

    def live(self) -> tuple[str, bool]:
        """The key of the node where the conversation goes on, as the program itself decides.

        Of all ends the last in the file, and rather one where people spoke: then no earlier one can be it.
        """
        best, rank, last = -1, (False, -1), -1
        for end, flags in enumerate(self._flags):
            if flags & _NAMED:
                continue
            leaf = self._leaves[end]
            now = (leaf >= 0 and bool(self._flags[leaf] & _LIVE), leaf)
            if leaf >= 0 and (best < 0 or now >= rank):
                best, rank, last = leaf, now, end
        return (self._keys[last], rank[0]) if last >= 0 else ("", False)


_MOST = 64
"""So many records are waited with: then it is the beginning that is lost."""


def in_order(records: Iterator[tuple[int, Any]], problems: list[Problem]) -> Iterator[tuple[int, Any]]:
    """The same records; what hangs on a later one comes behind that. If none comes, it is reported and left out.

    On a terminal the first answer, and what came of it, may be in the file before what was asked: what a session
    begins with is only written once there is an answer.
    """
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
