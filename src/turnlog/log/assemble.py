"""Lines to entries in order: what a batch is, what counts, and what is damage. Pure, both ways.

Forwards and backwards give the same entries. The rules, in the words of docs/format.md:
- `seq` only grows; a line that does not is left out (`order`).
- A batch counts when all its lines are there. An incomplete one is left out (`unfinished`) if nothing valid
  follows or the next valid line says `sealed`; otherwise the damage came later and its other lines count.
- An edited line counts if its `seq` fits between its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from turnlog.log.codec import Damage, Flawed, Unreadable, decode, salvage
from turnlog.log.entry import AnyEntry, Note

Line = tuple[int, bytes]
"""Offset and bytes of a line, without its newline."""
Placed = tuple[int, AnyEntry]
"""Offset and entry."""
_END = 1 << 63
_NOBODY: AnyEntry = Note(id="", text="")  # stands for a following line that seals nothing


def _bad_line(offset: int, line: bytes) -> tuple[list[Placed], list[Damage]]:
    """What a line gives that is not simply good."""
    if isinstance(line, Oversize):
        return [], [Damage(offset, line.length, "oversize")]
    size = len(line)
    try:
        item = decode(line)
    except Unreadable as why:
        found = salvage(line)
        if not found:
            return [], [Damage(offset, size, why.kind)]
        placed = [(offset + at, entry) for at, _, entry in found]
        return placed, [Damage(offset, size, "spliced", placed[0][1].seq)]
    if isinstance(item, Flawed):
        return [(offset, item.entry)], [Damage(offset, size, item.kind, item.entry.seq)]
    return [(offset, item)], []


def _is_blank(line: bytes) -> bool:
    """Whether a line says nothing: empty, or blanked out by a repair."""
    return not line.strip() and not isinstance(line, Oversize)


class Oversize(bytes):
    """Stands for a line too long to hold: its beginning, and how long it is."""

    length: int = 0


class _Batch:
    """The lines of one batch, as far as they have been seen, in the order they were seen."""

    __slots__ = ("lines", "top")

    def __init__(self, placed: Placed) -> None:
        self.lines = [placed]
        self.top = placed[1].seq + placed[1].more  # the seq of its last line, on whichever line we are

    def takes(self, entry: AnyEntry) -> bool:
        return (
            entry.seq + entry.more == self.top
            and entry.batch == self.lines[0][1].batch
            and entry.seq != self.lines[-1][1].seq
        )

    @property
    def is_whole(self) -> bool:
        return len(self.lines) == self.lines[0][1].batch

    @property
    def offset(self) -> int:
        return min(self.lines[0][0], self.lines[-1][0])

    def as_unfinished(self) -> Iterator[Damage]:
        for offset, entry in self.lines:
            yield Damage(offset, 0, "unfinished", entry.seq)


def forward(lines: Iterable[Line], *, last: int = 0) -> Iterator[Placed | Damage]:
    """Entries and damage, oldest first. `last` is the `seq` before the first line."""
    batch: _Batch | None = None
    edited: list[Placed] = []

    def give(placed: Iterable[Placed], limit: int = _END) -> Iterator[Placed | Damage]:
        nonlocal last
        for offset, entry in placed:
            if last < entry.seq < limit:
                last = entry.seq
                yield offset, entry
            else:
                yield Damage(offset, 0, "order", entry.seq)

    def settle(following: Placed | None) -> Iterator[Placed | Damage]:
        """Give out what waited for the next valid line."""
        nonlocal batch, last
        if batch is not None:
            held, batch = batch, None
            if held.is_whole or not _voids(following, held.offset):
                yield from give(held.lines)
            else:
                yield from held.as_unfinished()
                last = max(last, *(entry.seq for _, entry in held.lines))
        if edited:
            yield from give(edited, _END if following is None else following[1].seq)
            edited.clear()

    for offset, line in lines:
        try:
            item = decode(line)
        except Unreadable:
            item = None
        if item is not None and not isinstance(item, Flawed):
            if batch is None and not edited and not item.more and not item.batch:
                if item.seq > last:
                    last = item.seq
                    yield offset, item
                else:
                    yield Damage(offset, len(line), "order", item.seq)
                continue
            placed, damages = [(offset, item)], []
        elif _is_blank(line):
            continue
        else:
            placed, damages = _bad_line(offset, line)
        yield from damages
        for one in placed:
            entry = one[1]
            if batch is not None and not entry.sealed and batch.takes(entry):
                batch.lines.append(one)
                if batch.is_whole:
                    yield from settle(one)
            elif entry.unverified and not (entry.more or entry.batch):
                edited.append(one)
            else:
                yield from settle(one)
                if entry.more or entry.batch:
                    batch = _Batch(one)
                else:
                    yield from give([one])
    yield from settle(None)


def _voids(following: Placed | None, offset: int) -> bool:
    """Whether what begins at `offset` was given up: nothing follows it, or what follows says so."""
    if following is None:
        return True
    return following[1].sealed > 0 and following[0] - following[1].sealed <= offset


def backward(lines: Iterable[Line], *, before: int = _END, at_end: bool = True) -> Iterator[Placed | Damage]:
    """Entries and damage, newest first; only entries with `seq` below `before`.

    `at_end`: nothing follows the first line. An entry waits for the next older one, because only then
    does it show whether its line was put in the wrong place.
    """
    newer: Placed | None = None if at_end else (_END, _NOBODY)
    waiting: Placed | None = None
    batch: _Batch | None = None
    edited: list[Placed] = []
    bound = _END

    def give(placed: Iterable[Placed], older: int) -> Iterator[Placed | Damage]:
        nonlocal bound
        for offset, entry in placed:
            if older < entry.seq < bound:
                bound = entry.seq
                if bound < before:
                    yield offset, entry
            else:
                yield Damage(offset, 0, "order", entry.seq)

    def release(older: int) -> Iterator[Placed | Damage]:
        nonlocal waiting
        if waiting is not None:
            held, waiting = waiting, None
            yield from give([held], older)
        if edited:
            yield from give(edited, older)
            edited.clear()

    def close() -> Iterator[Placed | Damage]:
        """Give out a batch, now that its oldest line has been seen."""
        nonlocal batch, waiting, newer
        if batch is None:
            return
        held, batch = batch, None
        if not held.is_whole and _voids(newer, held.offset):
            yield from held.as_unfinished()
            return
        for one in held.lines:
            yield from release(one[1].seq)
            waiting = one
        newer = held.lines[-1]

    for offset, line in lines:
        try:
            item = decode(line)
        except Unreadable:
            item = None
        if item is not None and not isinstance(item, Flawed):
            if batch is None and not edited and not item.more and not item.batch:
                if waiting is not None:
                    seq = waiting[1].seq
                    if item.seq < seq < bound:
                        bound = seq
                        if seq < before:
                            yield waiting
                    else:
                        yield Damage(waiting[0], 0, "order", seq)
                newer = waiting = (offset, item)
                continue
            placed, damages = [(offset, item)], []
        elif _is_blank(line):
            continue
        else:
            placed, damages = _bad_line(offset, line)
        yield from damages
        for one in reversed(placed):
            entry = one[1]
            if batch is not None and not batch.lines[-1][1].sealed and batch.takes(entry):
                batch.lines.append(one)
                continue
            yield from close()
            if entry.unverified and not (entry.more or entry.batch):
                edited.append(one)
            elif entry.more or entry.batch:
                batch = _Batch(one)
            else:
                yield from release(entry.seq)
                newer = waiting = one
    yield from close()
    yield from release(0)
