"""Assemble lines into entries: their order, complete batches, and damage. Pure, in both directions.

Reading forwards and backwards gives the same entries. The rules, in the words of docs/format.md:
- `seq` only grows. Of two lines next to each other that break this, the one goes (`order`) that does not fit between
  the lines around them either; if both fit, the later one. An edited line goes if it does not fit between the
  verified lines around it.
- A batch counts when all its lines are there. An incomplete one is left out (`unfinished`) if nothing valid
  follows or the next valid line says `sealed`; otherwise the damage came later and its other lines count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from turnlog.log.codec import Damage, Flawed, Unreadable, decode, salvage
from turnlog.log.entry import AnyEntry, Note

Line = tuple[int, bytes]
"""Offset and bytes of a line, without its newline."""
EntryAt = tuple[int, AnyEntry]
"""Offset and entry."""
_END = 1 << 63
_MOST_EDITED = 10_000
"""Of more edited lines in a row than this, the first are not held back, so that memory stays bounded."""
_SEALS_NOTHING: AnyEntry = Note(id="", text="")  # stands for a following line that seals nothing


class _SeenLine(Struct, gc=False):
    """An entry that could be read, and the offset and length of its bytes."""

    offset: int
    entry: AnyEntry
    length: int


def _bad_line(offset: int, line: bytes) -> tuple[list[_SeenLine], list[Damage]]:
    """Return the entries and the damage in a line that is not intact."""
    if isinstance(line, Oversize):
        return [], [Damage(offset, line.length, "oversize")]
    size = len(line)
    try:
        item = decode(line)
    except Unreadable as why:
        salvaged = salvage(line)
        if not salvaged:
            return [], [Damage(offset, size, why.kind)]
        seen = [_SeenLine(offset + at, entry, length) for at, length, entry in salvaged]
        return seen, [Damage(offset, size, "spliced", seen[0].entry.seq)]
    if isinstance(item, Flawed):
        return [_SeenLine(offset, item.entry, size)], [Damage(offset, size, item.kind, item.entry.seq)]
    return [_SeenLine(offset, item, size)], []


def _is_blank(line: bytes) -> bool:
    """Whether a line is empty, or was blanked out by a repair."""
    return not line.strip() and not isinstance(line, Oversize)


class Oversize(bytes):
    """A placeholder for a line that is too long to hold: its beginning, and its length."""

    length: int = 0


class _Batch:
    """The lines of one batch that were seen so far, in the order in which they were seen."""

    __slots__ = ("back", "damage", "lines", "top")

    def __init__(self, seen: _SeenLine, *, back: bool) -> None:
        self.back = back
        self.lines = [seen]
        self.damage: list[Damage] = []
        """Damage found among these lines or after them."""
        self.top = seen.entry.seq + seen.entry.more  # the seq of the batch's last line

    def takes(self, entry: AnyEntry) -> bool:
        return entry.seq + entry.more == self.top and entry.batch == self.lines[0].entry.batch

    @property
    def is_whole(self) -> bool:
        return len(self.lines) == self.lines[0].entry.batch

    def settled(self, following: _SeenLine | None) -> Iterator[EntryAt | Damage]:
        """Return the batch's entries, or the damage, now that the following line in the log is known."""
        offset = min(self.lines[0].offset, self.lines[-1].offset)
        parts: list[EntryAt | Damage]
        if self.is_whole or not _voids(following, offset):
            parts = [(line.offset, line.entry) for line in self.lines]
        else:
            parts = [Damage(line.offset, line.length, "unfinished", line.entry.seq) for line in self.lines]
        if self.damage:
            parts += self.damage
            parts.sort(key=_position, reverse=self.back)
        return iter(parts)


def _position(item: EntryAt | Damage) -> tuple[int, bool]:
    """Return the sort key of an item: a line's damage comes before the entries that share the line."""
    return (item.offset, False) if isinstance(item, Damage) else (item[0], True)


def _voids(following: _SeenLine | None, offset: int) -> bool:
    """Whether the batch at `offset` was abandoned: nothing follows it, or the following line is `sealed` over it."""
    if following is None:
        return True
    return following.entry.sealed > 0 and following.offset - following.entry.sealed <= offset


class _Order:
    """A buffer that holds lines back until it is clear that they are in order. Works in both directions.

    Of two neighbours that break the order, `older` and `newer`, one is dropped; the lines around them decide which.
    An edited line decides nothing: it must fit between the lines around it.
    """

    __slots__ = (
        "back", "bound", "damage", "edited", "edited_first", "edited_second", "first", "is_busy", "out", "second",
    )  # fmt: skip

    def __init__(self, *, back: bool, bound: int) -> None:
        self.back = back
        self.bound = bound
        """The `seq` of the last line that was released."""
        self.first: _SeenLine | None = None
        """The line that waits for the next one."""
        self.second: _SeenLine | None = None
        """The line that breaks the order with `first`."""
        self.edited_first: list[_SeenLine] = []
        """Edited lines found just before `first`; `edited_second` has those before `second`."""
        self.edited_second: list[_SeenLine] = []
        self.edited: list[_SeenLine] = []
        self.damage: list[Damage] = []
        """Damage found after `first`; reported after it."""
        self.is_busy = False
        """Whether anything but `first` is held back."""
        self.out: list[_SeenLine | Damage] = []
        """Lines and damage that were released."""

    def push(self, line: _SeenLine) -> None:
        """Add a line that is as it was written."""
        if self.second is not None:
            self._decide(line.entry.seq)
        first, seq = self.first, line.entry.seq
        if first is None:
            if seq >= self.bound if self.back else seq <= self.bound:
                self.out.append(_misplaced(line))
                return
            self.first, self.edited_first, self.edited = line, self.edited, []
        elif seq < first.entry.seq if self.back else seq > first.entry.seq:
            self._let_through(first)
            self.first, self.edited_first, self.edited = line, self.edited, []
        else:
            self.second, self.edited_second, self.edited = line, self.edited, []
        self.is_busy = bool(self.second is not None or self.edited_first or self.damage)

    def push_edited(self, line: _SeenLine) -> None:
        """Add a line that was edited by hand."""
        self.is_busy = True
        self.edited.append(line)
        if len(self.edited) > _MOST_EDITED:
            first, *others = self.edited
            self.edited = []  # `push` takes what is here for lines before this one
            self.push(first)
            self.edited += others
            self.is_busy = True

    def push_damage(self, damages: list[Damage]) -> None:
        """Add the damage of a line."""
        if self.first is None:
            self.out += damages
        elif damages:
            self.damage += damages
            self.is_busy = True

    def end(self) -> None:
        """Release everything: no line follows."""
        if self.second is not None:
            self._decide(0 if self.back else _END)
        if self.first is not None:
            self._let_through(self.first)
        self.out += self.damage
        self._fit(self.edited, 0 if self.back else _END)

    def _decide(self, beyond: int) -> None:
        assert self.first is not None
        assert self.second is not None
        older, newer = (self.second, self.first) if self.back else (self.first, self.second)
        below, above = (beyond, self.bound) if self.back else (self.bound, beyond)
        left = older if older.entry.seq < above else newer if newer.entry.seq > below else None
        self.out += self.damage  # now: an entry may share the damaged line, and comes after its damage
        self.damage = []
        for line in (self.first, self.second):
            if line is not left:
                self.out.append(_misplaced(line))
        if left is self.second:
            self.edited_first += self.edited_second
        elif left is self.first:
            self.edited = self.edited_second + self.edited
        else:
            self.edited = self.edited_first + self.edited_second + self.edited
            self.edited_first = []
        self.first, self.second, self.edited_second = left, None, []

    def _let_through(self, line: _SeenLine) -> None:
        self._fit(self.edited_first, line.entry.seq)
        self.out.append(line)
        if self.damage:
            self.out += self.damage
            self.damage = []
        self.bound = line.entry.seq

    def _fit(self, edited: list[_SeenLine], beyond: int) -> None:
        """Release the edited lines that fit: the same ones in both directions."""
        last, limit = (beyond, self.bound) if self.back else (self.bound, beyond)
        fitting: list[_SeenLine] = []
        for line in reversed(edited) if self.back else edited:
            if last < line.entry.seq < limit:
                last = line.entry.seq
                fitting.append(line)
            else:
                self.out.append(_misplaced(line))
        self.out.extend(reversed(fitting) if self.back else fitting)


def _misplaced(line: _SeenLine) -> Damage:
    return Damage(line.offset, line.length, "order", line.entry.seq)


def _in_order(lines: Iterable[Line], *, back: bool, bound: int) -> Iterator[_SeenLine | Damage]:
    """Yield the lines that can be read and are in order, and the damage."""
    order = _Order(back=back, bound=bound)
    push, out = order.push, order.out
    for offset, line in lines:
        try:
            item = decode(line)
        except Unreadable:
            item = None
        if item is None or isinstance(item, Flawed):
            if _is_blank(line):
                continue
            seen, damages = _bad_line(offset, line)
            order.push_damage(damages)
            for one in reversed(seen) if back else seen:
                (order.push_edited if one.entry.unverified else push)(one)
        else:
            first = order.first
            if first is not None and not order.is_busy:
                seq = first.entry.seq
                if item.seq < seq if back else item.seq > seq:  # a copy of `push`, for speed: nearly every line
                    order.bound = seq
                    order.first = _SeenLine(offset, item, len(line))
                    yield first
                    continue
            push(_SeenLine(offset, item, len(line)))
        if out:
            yield from out
            out.clear()
    order.end()
    yield from out


def forward(lines: Iterable[Line], *, last: int = 0) -> Iterator[EntryAt | Damage]:
    """Yield entries and damage, oldest first. `last` is the `seq` before the first line."""
    batch: _Batch | None = None
    for item in _in_order(lines, back=False, bound=last):
        if isinstance(item, Damage):
            if batch is None:
                yield item
            else:
                batch.damage.append(item)
            continue
        entry = item.entry
        if batch is not None:
            if not entry.sealed and batch.takes(entry):
                batch.lines.append(item)
                continue
            yield from batch.settled(item)
            batch = None
        if entry.more or entry.batch:
            batch = _Batch(item, back=False)
        else:
            yield item.offset, entry
    if batch is not None:
        yield from batch.settled(None)


def backward(lines: Iterable[Line], *, before: int = _END, at_end: bool = True) -> Iterator[EntryAt | Damage]:
    """Yield damage, and the entries with `seq` below `before`, newest first. `at_end`: no line follows these."""
    newer: _SeenLine | None = None if at_end else _SeenLine(_END, _SEALS_NOTHING, 0)
    batch: _Batch | None = None
    for item in _in_order(lines, back=True, bound=_END):
        if isinstance(item, Damage):
            if batch is None:
                yield item
            else:
                batch.damage.append(item)
            continue
        entry = item.entry
        if batch is not None:
            if not batch.lines[-1].entry.sealed and batch.takes(entry):
                batch.lines.append(item)
                continue
            yield from _below(before, batch.settled(newer))
            newer, batch = batch.lines[-1], None
        if entry.more or entry.batch:
            batch = _Batch(item, back=True)
        else:
            newer = item
            if entry.seq < before:
                yield item.offset, entry
    if batch is not None:
        yield from _below(before, batch.settled(newer))


def _below(before: int, items: Iterator[EntryAt | Damage]) -> Iterator[EntryAt | Damage]:
    return (item for item in items if isinstance(item, Damage) or item[1].seq < before)
