"""The processes that work in turns in a home, so that one that died is known to be gone.

Derived data: a missing row only leaves a turn in doubt for longer. So two concurrent writers may lose a row.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from turnlog.errors import TurnlogError
from turnlog.log.ids import process_word
from turnlog.machine.process import runs, this_process
from turnlog.store import Store, derived
from turnlog.thread.appender import turns_here

_NAME = "turns"
_MOST_GONE = 64
_entered: dict[str, int] = {}
"""How many turns this process began, by its word; a forked child has another word."""


class Worker(Struct, frozen=True):
    """A process that works in a turn, with the word that the ids of its turns begin with."""

    word: str
    who: dict[str, Any]


def this_worker() -> Worker:
    """This process."""
    return Worker(process_word(), dict(this_process()))


class _Row(Struct, array_like=True):
    """A process that began a turn."""

    word: str
    who: dict[str, Any]
    is_gone: bool = False


_decode = msgspec.msgpack.Decoder(list[_Row]).decode
_encode = msgspec.msgpack.Encoder().encode


def enter(store: Store, worker: Worker) -> list[str]:
    """Record that the process begins a turn; returns the words of processes that are gone."""
    word = worker.word
    _entered[word] = _entered.get(word, 0) + 1
    rows = _load(store)
    before = [row.word for row in rows if row.is_gone]
    for row in rows:
        if not row.is_gone and runs(row.who) is False:
            row.is_gone = True
    gone_rows = [row for row in rows if row.is_gone][-_MOST_GONE:]
    live_rows = [row for row in rows if not row.is_gone]
    is_known = any(row.word == word for row in live_rows)
    if not is_known or [row.word for row in gone_rows] != before:
        _save(store, [*gone_rows, *live_rows, *([] if is_known else [_Row(word, worker.who)])])
    return [row.word for row in gone_rows]


def leave(store: Store, turn: str) -> None:
    """Record that a turn of this process ended. A process that began only this turn is removed.

    A process that began more turns, such as an agent, stays as long as it runs, so that further turns write nothing.
    """
    word = process_word()
    if _entered.get(word) == 1 and turns_here() <= {turn}:
        _save(store, [row for row in _load(store) if row.word != word])


def _load(store: Store) -> list[_Row]:
    try:
        return _decode(derived.load(store, _NAME))
    except (msgspec.DecodeError, TurnlogError):
        return []  # nothing is known, so all turns without an end are in doubt


def _save(store: Store, rows: list[_Row]) -> None:
    try:
        derived.save(store, _NAME, _encode(rows))
    except TurnlogError:
        return  # as in `_load`; the turn itself must not fail because of this
