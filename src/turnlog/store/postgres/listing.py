"""Listings of sessions, by key or newest first; each page uses an index."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Any, LiteralString

from turnlog.log.entry import AnyEntry, Set, Start
from turnlog.store import Listed, Place
from turnlog.store.listing import ListingCursor, is_like
from turnlog.store.postgres.log import entry_in
from turnlog.store.postgres.names import LONGEST, id_bytes, id_text, key_of
from turnlog.store.postgres.pool import Pool

_FIRST_PAGE, _PAGE, _IDS = 64, 512, 2000
_MINUTE_MS = 60_000
_END = (1 << 63) - 1
_DOING = "listing sessions"
_PLACES: dict[Place, str] = {"live": "live", "deleted": "deleted", "aside": "base"}

# Subqueries: the planner might scan all entries for a join while there are few.
_ROW: LiteralString = """
select s.key, s.recent, s.last_ms, s.id, s.bytes,
    (select line from turnlog.entry
        where tenant = s.tenant and root = s.root and session = s.num and seq = s.first_seq),
    (select line from turnlog.entry
        where tenant = s.tenant and root = s.root and session = s.num and seq = s.wide_seq),
    (select line from turnlog.entry
        where tenant = s.tenant and root = s.root and session = s.num and seq = s.last_seq),
    s.deleted_ms
from turnlog.session as s where s.tenant = %s and s.place = %s
"""
_BY_KEY: LiteralString = _ROW + " and s.key >= %b order by s.key limit %s"
_THESE: LiteralString = _ROW + " and s.key = any(%b::bytea[])"
# The index is ordered by minutes; the sessions of one minute are sorted.
_NEWEST: LiteralString = (
    _ROW
    + " and s.recent <= %s and (s.recent, s.last_ms, s.id) < (%s, %s, %b)"
    + " order by s.recent desc, s.last_ms desc, s.id desc limit %s"
)
_IDS_BY_KEY = """
select key, id from turnlog.session where tenant = %s and place = %s and key >= %b and key < %b order by key limit %s
"""
_IDS_BY_ALIAS = "select id from turnlog.session where tenant = %s and place = %s and alias >= %b and alias < %b"


class Listing:
    """The listings of a tenant's sessions."""

    def __init__(self, pool: Pool, tenant: int) -> None:
        self._pool = pool
        self._tenant = tenant

    def ids(self, *, like: str = "", deleted: bool = False) -> list[str]:
        state, begin = _state(deleted), id_bytes(like)
        end = begin + b"\xff"  # no id contains this byte
        ids: set[str] = set()
        if begin:
            short = begin[:LONGEST]
            rows = self._pool.rows(_DOING, _IDS_BY_ALIAS, (self._tenant, state, short, short + b"\xff"))
            ids.update(id_text(bytes(row[0])) for row in rows)
        while rows := self._pool.rows(_DOING, _IDS_BY_KEY, (self._tenant, state, begin, end, _IDS)):
            ids.update(id_text(bytes(row[1])) for row in rows)
            begin = _next(rows)
        return [session_id for session_id in ids if is_like(session_id, like)]

    def listing(self, place: Place = "live", *, ids: Collection[str] | None = None) -> Iterator[Listed]:
        state, begin = _PLACES[place], b""
        if ids is not None:
            keys = [key_of(session_id) for session_id in dict.fromkeys(ids)]
            for start in range(0, len(keys), _PAGE):
                values = (self._tenant, state, keys[start : start + _PAGE])
                yield from map(_listed, self._pool.rows(_DOING, _THESE, values))
            return
        size = None if place == "aside" else _PAGE  # many logs aside may have one key, and a page begins after a key
        while rows := self._pool.rows(_DOING, _BY_KEY, (self._tenant, state, begin, size)):
            yield from map(_listed, rows)
            begin = _next(rows)

    def newest(self, *, deleted: bool = False, after: ListingCursor | None = None) -> Iterator[Listed]:
        position: tuple[int, int, bytes] = (_END, _END, b"")
        if after is not None:
            position = after.at_ms // _MINUTE_MS, after.at_ms, id_bytes(after.id)
        size = _FIRST_PAGE
        while rows := self._pool.rows(_DOING, _NEWEST, (self._tenant, _state(deleted), position[0], *position, size)):
            yield from map(_listed, rows)
            position = rows[-1][1:4]
            size = _PAGE


def _next(rows: list[tuple[Any, ...]]) -> bytes:
    """Return the smallest key after the last key of a page."""
    return bytes(rows[-1][0]) + b"\0"


def _state(deleted: bool) -> str:
    return "deleted" if deleted else "live"


def _listed(row: tuple[Any, ...]) -> Listed:
    _, _, _, session_id, size, first, wide, last, deleted_ms = row
    start, fact = _peek(first), _peek(wide)
    return Listed(
        id_text(bytes(session_id)),
        start if isinstance(start, Start) else None,
        fact if isinstance(fact, Set) else None,
        _peek(last),
        size,
        None if deleted_ms is None else datetime.fromtimestamp(deleted_ms / 1000, UTC),
    )


def _peek(line: bytes | None) -> AnyEntry | None:
    """Return the entry of a line, if it can be read."""
    return None if line is None else entry_in(bytes(line))
