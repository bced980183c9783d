"""The rowids of texts: times, but coarse, so that FTS5 needs a byte or two for each where whole ids take four.

The id of an entry is its millisecond and a number. Its rowid has the same number, behind the four minutes that the
millisecond lies in; the millisecond itself is in a column. Where four minutes have more entries than numbers, the
rest get those of the next ones: a rowid may be too late for its time, and never too early.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.texts import SHIFT

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator

_TICK, _NUMBERS = 18, 9
_BEGIN = 1_735_689_600_000 >> _TICK
"""The beginning of 2025: what is before it has numbers below zero, which take more room."""
_FULL = 1 << _NUMBERS
_LATEST = 1 << SHIFT
_REACH = "reach"
"""Noted where some are too late: by how much the number of any is larger than there are for its time."""
ID = f"(docs.at << {SHIFT} | (docs.id - (((docs.at >> {_TICK}) - {_BEGIN}) << {_NUMBERS})))"
"""In SQL: the id of an entry."""
LAST = f"coalesce((SELECT value FROM meta WHERE key = '{_REACH}'), {_FULL - 1})"
"""In SQL: the largest number of all."""
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
    """Rows that begin with the id and end with the rowid, the last rowid first: in the order of their ids."""
    waiting: list[tuple[Any, ...]] = []
    begun = 1 << 63
    for row in rows:
        if row[-1] < begun:
            # Whatever follows has a rowid of these four minutes or of earlier ones, and so its time.
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
    """Gives out those that nobody has. One writes at a time."""

    def __init__(self, db: sqlite3.Connection, times: Iterable[int]) -> None:
        self._db = db
        firsts = sorted({first_at(at) for at in times})
        self._free: dict[int, int] = {}
        self._look(firsts)
        self._goes_on = {first: first for first in firsts}
        """Where there may be room for those that had to be put off."""
        self._reach = 0

    def _look(self, firsts: list[int]) -> None:
        for first, last in self._db.execute(_TAKEN, (str(firsts),)):
            self._free[first] = first if last is None else last + 1

    def take(self, at: int) -> tuple[int, int]:
        """A rowid for that time, and the time: another one if there are a million before it."""
        begin = first_at(at)
        first = self._goes_on.setdefault(begin, begin)
        while (rowid := self._next(first)) >= first + _FULL:
            first += _FULL
        self._goes_on[begin] = first
        self._free[first] = rowid + 1
        if rowid - begin >= _LATEST:
            at = ((rowid - _LATEST >> _NUMBERS) + _BEGIN + 1) << _TICK
        self._reach = max(self._reach, rowid - first_at(at))
        return rowid, at

    def _next(self, first: int) -> int:
        if first not in self._free:
            self._look([first])
        return self._free[first]

    def remember(self) -> None:
        """How far any is from its time."""
        if self._reach >= _FULL:
            self._db.execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = max(value, excluded.value)",
                (_REACH, self._reach),
            )
