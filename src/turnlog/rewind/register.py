"""The processes that work in turns in a home, as far as it knows, so that one that died is known to be gone.

Derived: what is not here only stays in doubt for longer. So two processes that write at once may lose a row.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from turnlog.errors import TurnlogError
from turnlog.log.ids import process_word
from turnlog.machine.process import lives, this_process
from turnlog.store import Store, derived
from turnlog.thread.appender import turns_here

_NAME = "turns"
_MOST_GONE = 64
_entered: dict[str, int] = {}
"""How many turns this process began, by its word: a forked child has another one."""


class Worker(Struct, frozen=True):
    """A process that works in a turn, by the word that its turns begin with."""

    word: str
    who: dict[str, Any]


def here() -> Worker:
    """This process."""
    return Worker(process_word(), this_process())


class _Row(Struct, array_like=True):
    """A process that began a turn."""

    word: str
    who: dict[str, Any]
    is_gone: bool = False


_decode = msgspec.msgpack.Decoder(list[_Row]).decode
_encode = msgspec.msgpack.Encoder().encode


def enter(store: Store, worker: Worker) -> list[str]:
    """That process begins a turn; returns the words of those that are gone by now."""
    word = worker.word
    _entered[word] = _entered.get(word, 0) + 1
    rows = _load(store)
    gone = [row for row in rows if row.is_gone]
    for row in rows:
        if not row.is_gone and lives(row.who) is False:
            row.is_gone = True
    over = [row for row in rows if row.is_gone][-_MOST_GONE:]
    there = [row for row in rows if not row.is_gone]
    is_known = any(row.word == word for row in there)
    if not is_known or len(over) > len(gone):
        _keep(store, [*over, *there, *([] if is_known else [_Row(word, worker.who)])])
    return [row.word for row in over]


def leave(store: Store, turn: str) -> None:
    """A turn of this process ended. Who began only this one is taken out; many cost no more than the first.

    An agent stays as long as it is there: it begins one turn after the other.
    """
    word = process_word()
    if _entered.get(word) == 1 and turns_here() <= {turn}:
        _keep(store, [row for row in _load(store) if row.word != word])


def _load(store: Store) -> list[_Row]:
    try:
        return _decode(derived.load(store, _NAME))
    except (msgspec.DecodeError, TurnlogError):
        return []  # nothing is known, and everything in doubt


def _keep(store: Store, rows: list[_Row]) -> None:
    try:
        derived.save(store, _NAME, _encode(rows))
    except TurnlogError:
        return  # the same; the turn itself must not fail because of it
