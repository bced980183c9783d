"""The lines of what people and models said, what hangs on what, and at which of its ends the conversation is.

Any other line is decoded whole. A file of a gigabyte has some 300,000 lines, so their links lie in flat arrays.
Objects that refer to each other would take more room, and a chain of that length cannot be freed by CPython without
exhausting the stack.
"""

# Without `from __future__ import annotations`, as in `turnlog.log.entry`.
from array import array
from collections.abc import Iterator
from typing import Any

from msgspec import UNSET, Struct, convert, field
from msgspec.json import Decoder

from turnlog.formats import Problem
from turnlog.interop.value import fields, items, text
from turnlog.log.startup import NamedTuple

_SAID, _LIVE, _NAMED = 1, 2, 4


class _ApiMessage(Struct, gc=False):
    """A message of the API, or a part of one."""

    content: Any = None
    usage: Any = None
    id: Any = UNSET
    model: Any = None
    stop_reason: Any = None
    stop_details: Any = None
    error: Any = None


class ClaudeLine(Struct, tag_field="type", tag="user", gc=False):
    """What people or tools said."""

    uuid: str
    message: _ApiMessage
    timestamp: Any = None
    parent: Any = field(default=UNSET, name="parentUuid")
    logical: Any = field(default=None, name="logicalParentUuid")
    is_side: Any = field(default=None, name="isSidechain")
    is_meta: Any = field(default=None, name="isMeta")
    is_hidden: Any = field(default=None, name="isVisibleInTranscriptOnly")
    is_summary: Any = field(default=None, name="isCompactSummary")
    team: Any = field(default=None, name="teamName")
    branch: Any = field(default=None, name="gitBranch")
    fork: Any = field(default=None, name="forkedFrom")
    details: Any = field(default=None, name="toolUseResult")
    request: Any = field(default=None, name="requestId")
    prompt: Any = field(default=None, name="promptId")
    error: Any = None
    is_error: Any = field(default=None, name="isApiErrorMessage")

    @property
    def is_live(self) -> bool:
        """Whether the conversation may be at it."""
        return not (self.is_side or self.is_meta or self.team)

    @property
    def is_prompt(self) -> bool:
        """Whether the line of a user is a prompt and has no result of a tool."""
        content = self.message.content
        return isinstance(content, str) or not any(item.get("type") == "tool_result" for item in items(content))


class ClaudeAnswer(ClaudeLine, tag="assistant"):
    """What a model said."""


decode_line = Decoder(ClaudeLine | ClaudeAnswer).decode


def line_of(record: dict[str, Any]) -> ClaudeLine:
    """The same of a record that was decoded whole."""
    kind = ClaudeAnswer if record["type"] == "assistant" else ClaudeLine
    return convert({**record, "message": fields(record.get("message"))}, kind)


def key_of(uuid: str, fork: Any) -> str:
    """The record's own id; in a fork that of what it is a copy of."""
    copied = fields(fork).get("messageUuid") if fork is not None else None
    return copied if isinstance(copied, str) else uuid


class LiveEnd(NamedTuple):
    """The key of the node where the conversation goes on, "" for none, and whether no record before can change it."""

    key: str
    is_certain: bool


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

    def node_of(self, uuid: str) -> str:
        """The key of the node that a record belongs to; "" for none."""
        number = self._numbers.get(uuid)
        return self._keys[number] if number is not None else ""

    def redirect(self, uuid: str, key: str) -> None:
        """Children of that record continue after another node."""
        self._keys[self._numbers[uuid]] = key

    def live(self) -> LiveEnd:
        """The end of the tree where the conversation goes on, as the program itself decides.

        It is the last of all ends in the file. An end behind a message of the conversation itself is preferred to one
        behind a side chain or a note of the program.
        """
        best, rank, last = -1, (False, -1), -1
        for end, flags in enumerate(self._flags):
            if flags & _NAMED:
                continue
            leaf = self._leaves[end]
            now = (leaf >= 0 and bool(self._flags[leaf] & _LIVE), leaf)
            if leaf >= 0 and (best < 0 or now >= rank):
                best, rank, last = leaf, now, end
        return LiveEnd(self._keys[last], rank[0]) if last >= 0 else LiveEnd("", False)


_MOST = 64
"""The number of records that wait for their parent, at most: then the beginning is lost."""


def in_order(records: Iterator[tuple[int, Any]], problems: list[Problem]) -> Iterator[tuple[int, Any]]:
    """The same records; what hangs on a later one comes behind that.

    On a terminal the first answer, and what came of it, may be in the file before what was asked: what a session
    begins with is only written once there is an answer. If no such record comes, those that wait for it are reported
    and left out, because the program may be about to write it; but they are given if a damaged line stands before the
    end of them, which then was that record.
    """
    early: list[tuple[int, Any]] = []
    waiting: set[str] = set()
    wanted = ""
    for offset, record in records:
        uuid, parent = _link(record)
        is_early = uuid and parent and (parent in waiting if early else type(record) is ClaudeAnswer)
        if is_early and len(early) < _MOST and not (type(record) is ClaudeLine and record.is_prompt):
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
    if early and any(problem.offset is not None and problem.offset < early[-1][0] for problem in problems):
        yield from early
    elif early:
        problems.append(Problem(f"{len(early)} records hang on one that is not there yet: they were left out"))


def _link(record: Any) -> tuple[str, str]:
    """The id of a record, and of the one that it hangs on."""
    is_whole = isinstance(record, dict)
    link = (fields(record).get("uuid"), fields(record).get("parentUuid")) if is_whole else (record.uuid, record.parent)
    return text(link[0]) or "", text(link[1]) or ""
