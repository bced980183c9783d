"""What a crash may leave of what was done."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

from tests.store.crashlab.tape import (
    NAMES,
    SECTOR,
    Book,
    Data,
    Link,
    Rename,
    Size,
    Step,
    Synced,
    Tape,
    Told,
    Tree,
    Unlink,
)

_ALL_SUBSETS_UP_TO = 9
_RANDOM_SUBSETS = 12
_CUTS = 4


class Kept(NamedTuple):
    """One state: the crash came after `time` events, and these steps had reached the disk."""

    time: int
    steps: frozenset[int]
    cut: tuple[int, int] | None = None
    """A page that was torn: the step, and how many of its bytes arrived."""


class Timeline:
    """A tape read under one model: what is certain, and what is pending, at every moment."""

    def __init__(self, tape: Tape, model: str, *, since: int = 0) -> None:
        self.tape = tape
        self.events = tape.events
        self.is_ordered = model == "ext4"
        self.since = since

    def certain(self, time: int) -> frozenset[int]:
        """The steps that a sync has brought to the disk by then."""
        done: set[int] = set()
        for moment in range(time):
            event = self.events[moment]
            if isinstance(event, Synced):
                done.update(i for i in range(moment) if self._covers(event.node, self.events[i]))
        return frozenset(done)

    def _covers(self, node: int, event: Step | Synced | Told) -> bool:
        if isinstance(event, (Data, Size)):
            return event.node == node
        if not isinstance(event, NAMES):
            return False
        if self.is_ordered or event.folder == node:
            return True
        return isinstance(event, Rename) and event.new_folder == node

    def legal(self, steps: frozenset[int], time: int) -> frozenset[int]:
        """The same, without what the model does not let reach the disk before the rest."""
        if not self.is_ordered:
            return steps
        kept: set[int] = set()
        missing: dict[int, int] = {}
        """File: from where on bytes are missing."""
        is_over = False
        for index in range(time):
            event = self.events[index]
            if isinstance(event, NAMES):
                is_over = is_over or index not in steps
                if not is_over:
                    kept.add(index)
            elif isinstance(event, Data):
                if index in steps:
                    kept.add(index)
                else:
                    missing[event.node] = min(event.offset, missing.get(event.node, event.offset))
            elif isinstance(event, Size) and index in steps and event.size <= missing.get(event.node, event.size):
                kept.add(index)
        return frozenset(kept)

    def states(self, rng: random.Random) -> Iterator[Kept]:
        """Every subset of what is pending where that can be; else prefixes, single losses and random ones."""
        certain: frozenset[int] = frozenset()
        for time in range(self.since, len(self.events) + 1):
            if time == self.since or isinstance(self.events[time - 1], Synced):
                certain = self.certain(time)
            pending = [i for i in range(time) if not isinstance(self.events[i], (Synced, Told)) and i not in certain]
            for some in _subsets(pending, rng):
                yield Kept(time, self.legal(certain | some, time))
            yield from self._torn(time, certain, pending, rng)

    def _torn(self, time: int, certain: frozenset[int], pending: list[int], rng: random.Random) -> Iterator[Kept]:
        """The newest page of a write arrived in part."""
        newest = next((i for i in reversed(pending) if isinstance(self.events[i], Data)), None)
        if newest is None:
            return
        event = self.events[newest]
        assert isinstance(event, Data)
        length = len(event.data)
        cuts = {1, length // 2, length - 1, SECTOR - event.offset % SECTOR}
        cuts |= {rng.randrange(1, length) for _ in range(_CUTS) if length > 1}
        steps = certain | {i for i in pending if i <= newest}
        for cut in sorted(c for c in cuts if 0 < c < length):
            yield Kept(time, steps, (newest, cut))
            if not self.is_ordered and newest + 1 < time:
                yield Kept(time, steps | {newest + 1}, (newest, cut))

    def tree(self, kept: Kept) -> Tree:
        """The state itself."""
        tree = Tree()
        tree.folders = {node: dict(names) for node, names in self.tape.base.folders.items()}
        files = {node: bytearray(data) for node, data in self.tape.base.files.items()}
        sizes = {node: len(data) for node, data in files.items()}
        for index in sorted(kept.steps):
            match self.events[index]:
                case Data(node, offset, data):
                    grown = kept.cut is not None and kept.cut[0] == index
                    if grown:
                        data = data[: kept.cut[1]]
                    content = files.setdefault(node, bytearray())
                    if len(content) < offset:
                        content.extend(bytes(offset - len(content)))
                    content[offset : offset + len(data)] = data
                    if grown:
                        sizes[node] = max(sizes.get(node, 0), offset + len(data))
                case Size(node, size):
                    if size < sizes.get(node, 0):
                        del files.setdefault(node, bytearray())[size:]
                    sizes[node] = size
                case Link(folder, name, node):
                    tree.folders.setdefault(folder, {})[name] = node
                case Unlink(folder, name):
                    tree.folders.setdefault(folder, {}).pop(name, None)
                case Rename(folder, name, new_folder, new_name, node):
                    old = tree.folders.setdefault(folder, {})
                    if old.get(name) == node:
                        del old[name]
                    tree.folders.setdefault(new_folder, {})[new_name] = node
        for node in self.tape.names:
            tree.folders.setdefault(node, {})
        for node, content in files.items():
            size = sizes.get(node, 0)
            tree.files[node] = bytes(content[:size]).ljust(size, b"\0")
        return tree

    def book(self, kept: Kept) -> Book:
        """What the caller had been promised by then."""
        for event in reversed(self.events[: kept.time]):
            if isinstance(event, Told):
                return event.book
        return self.tape.first_book

    def describe(self, kept: Kept) -> str:
        lost = [
            _brief(self.events[i])
            for i in range(kept.time)
            if i not in kept.steps and not isinstance(self.events[i], (Synced, Told))
        ]
        torn = f", {_brief(self.events[kept.cut[0]])} cut to {kept.cut[1]} bytes" if kept.cut else ""
        return f"crash after event {kept.time}, lost: {'; '.join(lost) or 'nothing'}{torn}"


def _subsets(pending: list[int], rng: random.Random) -> Iterator[frozenset[int]]:
    if len(pending) <= _ALL_SUBSETS_UP_TO:
        for count in range(len(pending) + 1):
            yield from map(frozenset, combinations(pending, count))
        return
    whole = frozenset(pending)
    for count in range(len(pending) + 1):
        yield frozenset(pending[:count])
    for one in pending:
        yield whole - {one}
        yield frozenset({one})
    for share in (0.2, 0.5, 0.8):
        for _ in range(_RANDOM_SUBSETS):
            yield frozenset(i for i in pending if rng.random() < share)


def _brief(event: Any) -> str:
    fields = [f"{len(value)} bytes" if isinstance(value, bytes) else str(value) for value in event]
    return f"{type(event).__name__}({', '.join(fields)})"
