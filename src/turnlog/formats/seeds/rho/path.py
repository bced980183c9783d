"""The conversation as rho is told it: what leads to an entry, what a model sees there, which result goes where."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from itertools import accumulate, takewhile
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from turnlog.formats._shared.view import compactions_on
from turnlog.formats.seeds.rho.message import Ear, Json, answers, calls_of, no_result, origin_of, tell
from turnlog.formats.seeds.rho.reading import shown_instead
from turnlog.formats.seeds.rho.record import message_line, stamp
from turnlog.formats.seeds.rho.vocabulary import is_newer
from turnlog.log.context import spoken, visible
from turnlog.log.entry import AnyEntry, Custom, Edit, Head, Message

_T = TypeVar("_T")


class RhoTold(Struct):
    """One line before there is a tree: a message, or a record that stands where it stands."""

    seq: int
    json: Json
    time: str = "0"
    display: Json | None = None
    line: bytes | None = None
    """As it was read, where we would write it otherwise."""
    gap: int = 0
    kind: str = "message"
    is_new: bool = False
    is_hidden: bool = False

    def record(self) -> Json:
        """The line of version 1."""
        return message_line(self.json, self.time, self.display)

    def shown(self) -> Json:
        """What people see of it in a tree."""
        return {"timestamp": self.time, "message": self.display if self.display is not None else self.json}


class Trail:
    """Every node of a session, and the ways between them."""

    def __init__(self, entries: list[AnyEntry], ear: Ear, *, is_first: bool = False) -> None:
        self._ear = ear
        self._is_first = is_first
        """Whether what a newer rho said has to be told in the words of the first."""
        self._nodes = {entry.seq: entry for entry in entries if entry.parent is not None}
        children = Counter(entry.parent for entry in self._nodes.values())
        self.forks = {seq for seq, count in children.items() if seq is not None and count > 1}
        self.forks |= {entry.to for entry in entries if isinstance(entry, Head)}
        self._told: dict[int, list[RhoTold]] = {}

    def at(self, seq: int) -> AnyEntry | None:
        """The node with that number."""
        return self._nodes.get(seq)

    def back(self, seq: int) -> Iterator[AnyEntry]:
        """The nodes that lead to one, newest first."""
        entry = self._nodes.get(seq)
        while entry is not None:
            yield entry
            entry = self._nodes.get(entry.parent or 0)

    def nearest(self, seq: int, closed: Mapping[int, _T]) -> _T | None:
        """What is known of the newest node on that way of which anything is."""
        return next((closed[entry.seq] for entry in self.back(seq) if entry.seq in closed), None)

    def span(self, seq: int, closed: Mapping[int, Any]) -> list[AnyEntry]:
        """The nodes since then, oldest first."""
        return [*takewhile(lambda entry: entry.seq not in closed, self.back(seq))][::-1]

    def record(self, entry: AnyEntry) -> list[AnyEntry]:
        """All entries of the record that this one ends, oldest first."""
        before = takewhile(lambda part: (origin_of(part) or {}).get("is") == "part", self.back(entry.parent or 0))
        return [entry, *before][::-1]

    def told(self, entry: AnyEntry) -> list[RhoTold]:
        """The messages that an entry is for rho."""
        if entry.seq not in self._told:
            message = spoken(entry) if isinstance(entry, (Message, Custom)) else None
            self._told[entry.seq] = [] if message is None else self._tell(message)
        return self._told[entry.seq]

    def _tell(self, message: Message) -> list[RhoTold]:
        if self._is_first and is_newer(message):
            message = replace(message, origin=None)
        origin = origin_of(message)
        if origin is None and not message.blocks:
            return []
        time, shown = stamp(message.clock or message.at, origin), shown_instead(message)
        is_hidden = message.display is False
        return [
            RhoTold(message.seq, said, time, shown, is_new=origin is None, is_hidden=is_hidden)
            for said in tell(message, self._ear)
        ]

    def history(self, seq: int) -> list[RhoTold]:
        """What a model sees at a node, oldest first."""
        path = list(self.back(seq))
        replaced, kept = visible(path, self._nodes.get)
        messages = [*replaced, *kept]
        compactions = compactions_on(path)
        is_bare = not compactions or (origin_of(compactions[0]) or {}).get("bare")
        if not is_bare and (not messages or messages[0].role != "system"):
            messages = [*_systems(path), *messages]
        return [told for message in messages for told in self._seen(message)]

    def _seen(self, message: Message) -> list[RhoTold]:
        entry = self._nodes.get(message.seq)
        if isinstance(entry, Message) and entry.blocks is message.blocks:
            return self.told(entry)
        origin = origin_of(message)
        if isinstance(entry, Message) and origin is not None:
            # It was edited: what it read like to the letter no longer counts.
            kept = {name: value for name, value in origin.items() if name not in ("message", "line")}
            message = replace(message, origin=kept)
        return self._tell(message)


def _systems(path: list[AnyEntry]) -> list[Message]:
    """The system messages a path (newest first) begins with, as they read now."""
    edits: dict[int, Edit] = {}
    for entry in path:
        if isinstance(entry, Edit):
            edits.setdefault(entry.entry, entry)
    found: list[Message] = []
    for entry in reversed(path):
        if isinstance(entry, Message):
            if entry.role != "system":
                break
            edit = edits.get(entry.seq)
            if edit is None:
                found.append(entry)
            elif edit.blocks is not None:
                found.append(replace(entry, blocks=edit.blocks))
    return found


def reached_by(lines: list[tuple[int, _T]]) -> dict[int, _T]:
    """Which line an entry stands for: the one by which all that came before it is written, and nothing else."""
    last = {seq: index for index, (seq, _) in enumerate(lines)}
    made_up = list(accumulate(seq == 0 for seq, _ in lines))
    counts = Counter(seq for seq, _ in lines)
    furthest, count = -1, 0
    found: dict[int, _T] = {}
    for seq in sorted(last):
        if seq:
            furthest, count = max(furthest, last[seq]), count + counts[seq]
            if count + made_up[furthest] == furthest + 1:
                found[seq] = lines[furthest][1]
    return found


# ── results by their calls ────────────────────────────────────────────────────────────────────────


def settled(items: list[RhoTold], ear: Ear, waiting: list[str] | None = None, time: str = "0") -> list[RhoTold]:
    """The same with the results of every call right behind it, in the order of the calls.

    rho hides everything from the first call on that is not answered so. A result that never came is made up, except
    at the very end of what was read from rho: there it may still come.
    """
    messages = [item for item in items if item.kind == "message"]
    if _is_sound(messages, waiting or []):
        return items
    results: dict[str, deque[int]] = {}
    callers: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        call = answers(item.json)
        if call is not None:
            results.setdefault(call, deque()).append(index)
        for name in calls_of(item.json):
            callers.setdefault(name, []).append(index)
    used: set[int] = set()
    done: list[RhoTold] = []

    def answer(calls: list[str], at: int, by: RhoTold | None) -> None:
        for call in calls:
            found, again = results.get(call, deque()), callers.get(call, [])
            while found and found[0] <= at:
                found.popleft()
            # A later call with the same id has a result of its own.
            rival = again[place] if (place := bisect_right(again, at)) < len(again) else len(items)
            if found and found[0] < rival:
                used.add(found[0])
                done.append(items[found.popleft()])
            elif by is None or by.is_new or _follows(items, used, at):
                ear.add("missing tool result", "one that says so")
                when = by.time if by is not None else items[0].time if items else time
                done.append(RhoTold(0, no_result(call), when, is_new=True))

    answer(waiting or [], -1, None)
    for index, item in enumerate(items):
        if index not in used:
            done.append(item)
            answer(calls_of(item.json), index, item)
    return done


def _follows(items: list[RhoTold], used: set[int], at: int) -> bool:
    """Whether anything comes after a call, its results aside."""
    return any(i not in used and answers(items[i].json) is None for i in range(at + 1, len(items)))


def _is_sound(messages: list[RhoTold], waiting: list[str]) -> bool:
    expected = deque(waiting)
    last: RhoTold | None = None
    for item in messages:
        call = answers(item.json)
        if expected:
            if call != expected.popleft():
                return False
            continue
        expected.extend(calls_of(item.json))
        last = item
    return not expected or (last is not None and not last.is_new)
