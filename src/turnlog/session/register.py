"""The turns that are going on in a home, as far as it knows, so that one whose process died is known to be over.

Derived: what is not here only stays in doubt for longer. So two processes that write at once may lose a row.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from turnlog.errors import TurnlogError
from turnlog.session.places import lives, this_process
from turnlog.store import Store

_NAME = "turns"
_MOST_OVER = 64


class _Row(Struct, array_like=True):
    """A turn that has begun and not ended."""

    turn: str
    who: dict[str, Any]
    is_over: bool = False
    """Whether its process was found to be gone."""


_decode = msgspec.msgpack.Decoder(list[_Row]).decode
_encode = msgspec.msgpack.Encoder().encode


def enter(store: Store, turn: str) -> list[str]:
    """A turn begins; returns those that never ended and are over by now."""
    rows = _load(store)
    for row in rows:
        row.is_over = row.is_over or lives(row.who) is False
    over = [row for row in rows if row.is_over][-_MOST_OVER:]
    going = [row for row in rows if not row.is_over]
    _keep(store, [*over, *going, _Row(turn, this_process())])
    return [row.turn for row in over]


def leave(store: Store, turn: str) -> None:
    """A turn ended."""
    rows = _load(store)
    left = [row for row in rows if row.turn != turn]
    if len(left) < len(rows):
        _keep(store, left)


def _load(store: Store) -> list[_Row]:
    try:
        return _decode(store.derived(_NAME))
    except (msgspec.DecodeError, TurnlogError):
        return []  # nothing is known, and everything in doubt


def _keep(store: Store, rows: list[_Row]) -> None:
    try:
        store.keep_derived(_NAME, _encode(rows))
    except TurnlogError:
        return  # the same; the turn itself must not fail because of it
