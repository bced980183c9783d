"""The outline of a session: one line per entry that a reader sees, without its text.

An outline is small enough to be cached for 100,000 entries, and answers at once which entries lead to a head, how they
are grouped and where the prompts are. It grows with the log.
"""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

import msgspec

from turnlog.formats import unknown_type
from turnlog.log.block import Text, Thinking, ToolCall, ToolResult
from turnlog.log.codec import BAD_JSON
from turnlog.log.context import text_of
from turnlog.log.entry import (
    Answer,
    AnyEntry,
    Ask,
    Child,
    Compaction,
    Custom,
    Edit,
    Head,
    Message,
    Note,
    Set,
    Spent,
    Turn,
    Unknown,
)  # fmt: skip
from turnlog.log.plainjson import UNKNOWN
from turnlog.log.prompt.promptmessage import LABEL, is_prompt, label_of
from turnlog.log.text import one_line

PROMPT, CALLS, ERROR, SHOWN = 1, 2, 4, 8
_NO_PARENT = -1
_LATEST_MS = 253_402_300_799_999
"""The last millisecond of the calendar. Rounding leads beyond it."""
_RULES = 2
"""The version of the rules. An outline that was cached with another version is ignored."""


class OutlineItem(NamedTuple):
    """One entry in an outline."""

    seq: int
    parent: int | None
    """The parent node; None for a mark. For a head entry, the node where the conversation continues."""
    kind: str
    """The role of a message, or the type of any other entry."""
    at_ms: int
    """0 if unknown."""
    size: int
    """The number of characters."""
    turn: str
    tool: str
    """The names of the tools that the entry calls or has results of."""
    label: str
    """For a prompt its beginning, for a mark its subject."""
    flags: int

    @property
    def is_prompt(self) -> bool:
        """Whether the entry is a prompt."""
        return bool(self.flags & PROMPT)

    @property
    def has_calls(self) -> bool:
        """Whether the entry calls tools."""
        return bool(self.flags & CALLS)

    @property
    def is_error(self) -> bool:
        """Whether the entry contains an error."""
        return bool(self.flags & ERROR)

    @property
    def is_shown(self) -> bool:
        """Whether a reader sees anything of the entry."""
        return bool(self.flags & SHOWN)


class _KeptOutline(msgspec.Struct, array_like=True):
    rules: int
    seqs: bytes
    parents: bytes
    times: bytes
    sizes: bytes
    flags: bytes
    kinds: bytes
    turns: bytes
    tools: bytes
    words: list[str]
    labels: dict[int, str]
    calls: dict[str, tuple[int, str]]


class Outline:
    """The lines of an outline, as columns, in the order of the log."""

    def __init__(self) -> None:
        self.seqs = array("q")
        self.parents = array("q")
        self.times = array("q")
        self.sizes = array("q")
        self.flags = array("B")
        self.kinds: list[str] = []
        self.turns: list[str] = []
        self.tools: list[str] = []
        self.labels: dict[int, str] = {}
        """By `seq`."""
        self._calls: dict[str, tuple[int, str]] = {}
        """The calls that have no result yet: the entry and the tool of each, by its id."""
        self.last = 0
        """The `seq` of the last entry that was taken, whether or not it has a line."""

    def __len__(self) -> int:
        return len(self.seqs)

    def turn_begins(self) -> dict[str, int]:
        """The first line of every bracketed turn, by its id. Their order is their numbering, as in `number_turn`."""
        begins: dict[str, int] = {}
        for kind, turn, seq in zip(self.kinds, self.turns, self.seqs, strict=True):
            if turn and kind == "turn" and self.labels.get(seq) == "begin":
                begins.setdefault(turn, seq)  # a turn that is reported again keeps its number
        return begins

    def take(self, entry: AnyEntry) -> int:
        """Add the next entry of the log. Returns its number of characters."""
        if entry.seq > self.last:
            self.last = entry.seq
        is_shown = is_shown_to_people(entry)
        if entry.parent is None and not is_shown and not isinstance(entry, (Head, Turn)):
            return 0
        at = entry.clock or entry.at
        size, flags, tool, label = _about(entry, self._calls)
        self.seqs.append(entry.seq)
        self.parents.append(_parent(entry))
        self.times.append(0 if at is None else min(round(at.timestamp() * 1000), _LATEST_MS))
        self.sizes.append(size)
        self.flags.append(flags | (SHOWN if is_shown else 0))
        self.kinds.append(_kind_of(entry))
        self.turns.append(entry.turn or "")
        self.tools.append(tool)
        if label:
            self.labels[entry.seq] = label
        return size

    def item(self, index: int) -> OutlineItem:
        """One line of the outline."""
        seq, parent = self.seqs[index], self.parents[index]
        return OutlineItem(
            seq, None if parent == _NO_PARENT else parent, self.kinds[index], self.times[index], self.sizes[index],
            self.turns[index], self.tools[index], self.labels.get(seq, ""), self.flags[index],
        )  # fmt: skip

    def __iter__(self) -> Iterator[OutlineItem]:
        return map(self.item, range(len(self)))

    def find(self, seq: int) -> int | None:
        """The index of an entry; None if it has no line."""
        index = bisect_left(self.seqs, seq)
        return index if index < len(self.seqs) and self.seqs[index] == seq else None

    def extend(self, other: Outline, until: int | None = None) -> None:
        """Append the lines of another outline, up to entry `until`."""
        end = len(other) if until is None else bisect_left(other.seqs, until + 1)
        for name in ("seqs", "parents", "times", "sizes", "flags", "kinds", "turns", "tools"):
            getattr(self, name).extend(getattr(other, name)[:end])
        self.labels.update({seq: text for seq, text in other.labels.items() if until is None or seq <= until})
        self._calls.update({id: call for id, call in other._calls.items() if until is None or call[0] <= until})
        self.last = max(self.last, other.last if until is None else min(until, other.last))

    def cut(self, last: int) -> None:
        """Remove every line after entry `last`."""
        end = bisect_left(self.seqs, last + 1)
        for name in ("seqs", "parents", "times", "sizes", "flags", "kinds", "turns", "tools"):
            del getattr(self, name)[end:]
        self.labels = {seq: text for seq, text in self.labels.items() if seq <= last}
        self._calls = {id: call for id, call in self._calls.items() if call[0] <= last}
        self.last = min(self.last, last)

    def path(self, head: int) -> list[int]:
        """The indexes of the nodes that lead to a head, oldest first. For a missing node, the one before it."""
        path: list[int] = []
        index = self._at_or_before(head)
        while index >= 0:
            path.append(index)
            parent = self.parents[index]
            if parent <= 0:
                break
            index = index - 1 if index and self.seqs[index - 1] == parent else self._at_or_before(parent)
        path.reverse()
        return path

    def _at_or_before(self, seq: int) -> int:
        """The index of a node, or of the last node before it."""
        index = bisect_left(self.seqs, seq + 1) - 1
        while index >= 0 and (self.parents[index] == _NO_PARENT or self.kinds[index] == "head"):
            index -= 1
        return index

    def encode(self) -> bytes:
        """The outline as bytes, for the cache."""
        words: dict[str, int] = {}

        def numbered(column: Iterable[str]) -> bytes:
            return array("I", [words.setdefault(word, len(words)) for word in column]).tobytes()

        kinds, turns, tools = numbered(self.kinds), numbered(self.turns), numbered(self.tools)
        kept = _KeptOutline(
            _RULES, self.seqs.tobytes(), self.parents.tobytes(), self.times.tobytes(), self.sizes.tobytes(),
            self.flags.tobytes(), kinds, turns, tools, list(words), self.labels, self._calls,
        )  # fmt: skip
        return zlib.compress(msgspec.msgpack.encode(kept), 1)

    @classmethod
    def decode(cls, data: bytes) -> Outline | None:
        """The outline from cached bytes; None if they are corrupt or of another version of the rules."""
        try:
            kept = msgspec.msgpack.decode(zlib.decompress(data), type=_KeptOutline)
        except (zlib.error, *BAD_JSON):
            return None
        if kept.rules != _RULES:
            return None
        outline = cls()
        for column, stored in (
            (outline.seqs, kept.seqs), (outline.parents, kept.parents), (outline.times, kept.times),
            (outline.sizes, kept.sizes), (outline.flags, kept.flags),
        ):  # fmt: skip
            column.frombytes(stored)
        outline.kinds, outline.turns, outline.tools = (
            [kept.words[number] for number in array("I", stored)] for stored in (kept.kinds, kept.turns, kept.tools)
        )
        outline.labels, outline._calls = kept.labels, kept.calls
        outline.last = outline.seqs[-1] if outline.seqs else 0
        return outline


def is_shown_to_people(entry: AnyEntry) -> bool:
    """Whether a reader sees anything of an entry, that is, whether `view` renders a row for it."""
    if isinstance(entry, Message):
        return entry.display is not False or entry.role == "tool" or entry.error is not None
    if isinstance(entry, Custom):
        return bool(entry.blocks)
    if isinstance(entry, Turn):
        return entry.state in ("aborted", "failed")
    if isinstance(entry, Set):
        return entry.key == "title" and not entry.unset
    if isinstance(entry, Spent):
        return bool(entry.why)
    if isinstance(entry, Note):
        return unknown_type(entry) is None
    return entry.is_shown


def _parent(entry: AnyEntry) -> int:
    if isinstance(entry, Head):
        return entry.to
    return _NO_PARENT if entry.parent is None else entry.parent


class _Summary(NamedTuple):
    """What an outline has of an entry besides its place."""

    size: int
    flags: int
    tools: str
    label: str


def _about(entry: AnyEntry, calls: dict[str, tuple[int, str]]) -> _Summary:
    if isinstance(entry, Message):
        return _message(entry, calls)
    if isinstance(entry, Compaction):
        size = sum(len(text_of(item.blocks)) for item in entry.replacement if isinstance(item, Message))
        sizes = [f"{number:,}" for number in (entry.tokens_before, entry.tokens_after) if number is not None]
        return _Summary(size, 0, "", " → ".join(sizes))
    if isinstance(entry, (Custom, Edit)):
        return _Summary(len(text_of(entry.blocks or [])), 0, "", entry.kind if isinstance(entry, Custom) else "")
    if isinstance(entry, Turn):
        return _Summary(0, ERROR * (entry.state == "failed"), "", entry.state)
    if isinstance(entry, Head):
        return _Summary(0, 0, "", entry.why)
    if isinstance(entry, Child):
        return _Summary(0, 0, "", entry.session)
    if isinstance(entry, Set):
        return _Summary(0, 0, "", one_line(str(entry.value), LABEL))
    if isinstance(entry, (Note, Ask, Answer)):
        return _Summary(len(entry.text), 0, "", one_line(entry.text, LABEL))
    return _Summary(0, 0, "", "")


def _message(message: Message, calls: dict[str, tuple[int, str]]) -> _Summary:
    size, flags = 0, ERROR * (message.error is not None)
    tools: list[str] = []
    for block in message.blocks:
        if type(block) is Text or type(block) is Thinking:  # `isinstance` takes longer than all the rest of this
            size += len(block.text)
        elif type(block) is ToolCall:
            tools.append(block.name)
            calls[block.id] = message.seq, block.name
            flags |= CALLS
        elif type(block) is ToolResult:
            content = block.content
            size += len(content if isinstance(content, str) else text_of(cast("list[Any]", content)))
            tools.append(calls.pop(block.call, (0, ""))[1] or block.name or "")
            flags |= ERROR * block.is_error
    label = ""
    if message.role == "user" and is_prompt(message):
        flags |= PROMPT
        label = label_of(message)
    tool = tools[0] if len(tools) == 1 else ", ".join(dict.fromkeys(filter(None, tools)))
    return _Summary(size, flags, tool, label)


def _kind_of(entry: AnyEntry) -> str:
    if isinstance(entry, Unknown):
        return UNKNOWN  # it may have the name of a known kind, without its fields
    return entry.role if isinstance(entry, Message) else entry.type


def outline_of(entries: Iterable[AnyEntry]) -> Outline:
    """The outline of these entries."""
    outline = Outline()
    for entry in entries:
        outline.take(entry)
    return outline
