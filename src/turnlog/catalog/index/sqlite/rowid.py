"""The rowids of texts: coarse times, so that FTS5 needs a byte or two for each where whole ids take four.

The id of an entry is its millisecond and a number. Its rowid has the same number, behind the four minutes that the
millisecond lies in; the millisecond itself is in a column. Where four minutes have more entries than numbers, the
rest get those of the next ones: a rowid may be too late for its time, and never too early.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.keys import SHIFT
from turnlog.catalog.index.notes import REACH

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator

_TICK, _NUMBERS = 18, 9
_BEGIN = 1_735_689_600_000 >> _TICK
"""The beginning of 2025: earlier rowids are negative, which takes more space."""
_FULL = 1 << _NUMBERS
_LATEST = 1 << SHIFT
ID = f"(docs.at << {SHIFT} | (docs.id - (((docs.at >> {_TICK}) - {_BEGIN}) << {_NUMBERS})))"
"""In SQL: the id of an entry."""
LAST = f"coalesce((SELECT value FROM meta WHERE key = '{REACH}'), {_FULL - 1})"
"""In SQL: the largest distance of a rowid from the first one of its time."""
_TAKEN = f"""
SELECT j.value, (SELECT max(id) FROM docs WHERE id >= j.value AND id < j.value + {_FULL}) FROM json_each(?) j
"""


def first_at(at: int) -> int:
    """The first rowid for a time."""
    return (at >> _TICK) - _BEGIN << _NUMBERS


def rowid_of(id: int) -> int:
    """The rowid of an entry."""
    return first_at(id >> SHIFT) + (id & (_LATEST - 1))


def id_of(rowid: int, at: int) -> int:
    """The id of an entry."""
    return at << SHIFT | (rowid - first_at(at))


def newest_first(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Sort rows by descending id. They begin with the id, end with the rowid, and come with descending rowids."""
    waiting: list[tuple[Any, ...]] = []
    begun = 1 << 63
    for row in rows:
        if row[-1] < begun:
            # A rowid is never too early for its time: all that follows is from these four minutes or earlier.
            number = row[-1] >> _NUMBERS
            begun, end = number << _NUMBERS, (number + _BEGIN + 1) << _TICK + SHIFT
            waiting.sort(reverse=True)
            ready = [one for one in waiting if one[0] >= end]
            yield from ready
            del waiting[: len(ready)]
        waiting.append(row)
    waiting.sort(reverse=True)
    yield from waiting


class Rowids:
    """Assigns free rowids. There is one writer at a time."""

    def __init__(self, db: sqlite3.Connection, times: Iterable[int]) -> None:
        self._db = db
        firsts = sorted({first_at(at) for at in times})
        self._free: dict[int, int] = {}
        self._read_last(firsts)
        self._first_free_tick = {first: first for first in firsts}
        """For each tick, the first one after it that may have free rowids."""
        self._overflow = 0

    def _read_last(self, firsts: list[int]) -> None:
        for first, last in self._db.execute(_TAKEN, (str(firsts),)):
            self._free[first] = first if last is None else last + 1

    def assign(self, at: int) -> tuple[int, int]:
        """Take a rowid for a time. Returns it and the time, which is a later one if the id would exceed its range."""
        begin = first_at(at)
        first = self._first_free_tick.setdefault(begin, begin)
        while (rowid := self._next_in_tick(first)) >= first + _FULL:
            first += _FULL
        self._first_free_tick[begin] = first
        self._free[first] = rowid + 1
        if rowid - begin >= _LATEST:
            at = ((rowid - _LATEST >> _NUMBERS) + _BEGIN + 1) << _TICK
        self._overflow = max(self._overflow, rowid - first_at(at))
        return rowid, at

    def _next_in_tick(self, first: int) -> int:
        if first not in self._free:
            self._read_last([first])
        return self._free[first]

    def remember(self) -> None:
        """Note the largest distance of a rowid from its time."""
        if self._overflow >= _FULL:
            self._db.execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = max(value, excluded.value)",
                (REACH, self._overflow),
            )
