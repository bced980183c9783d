"""Where an import was left, so that the next one costs what is new. Derived: without it, all is read again."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from turnlog.exchange.claim import HookTurn
from turnlog.formats import Format, Reading, ResumePoint, Source, format_of, is_known
from turnlog.log.digest import blake2b
from turnlog.log.entry import Alias
from turnlog.log.usage import Usage
from turnlog.machine.proof import proof
from turnlog.store import IMPORTED, Store, derived
from turnlog.thread.history import History

_SHAPE = 1
"""Of what is kept: another number for another one."""


class CarriedOver(Struct, kw_only=True):
    """What is known at the mark of a source: see `SourceIndex` and `Importer`."""

    seq: int = 0
    """The last entry of the log that all this is from."""
    steps: int = 0
    seqs: dict[str, int] = {}
    """Of the records behind the mark."""
    booked: dict[str, Usage] = {}
    sizes: dict[int, int] = {}
    unpaid: list[int] = []
    late: dict[str, Usage] = {}
    cursor: int = 0
    latest: datetime | None = None
    turns: list[HookTurn] = []
    turn: str | None = None
    alias: Alias | None = None
    moved: int = 0
    marks: dict[str, int] = {}
    has_own: bool = False


class _Kept(Struct):
    shape: int
    first: str
    """The first entry of the log."""
    size: int
    """How large the source was when all of it was here."""
    mtime: int
    """When it, or a file beside it that it is read from, was last written."""
    offset: int
    state: Any
    proof: bytes
    carried: CarriedOver


_encode = msgspec.msgpack.Encoder().encode


def _name(history: History, source: Source) -> str:
    what = "\n".join((history.id, source.path, source.key)).encode("utf-8", "surrogateescape")
    return f"{IMPORTED}{blake2b(what, digest_size=16).hexdigest()}"


def _load(store: Store, history: History, source: Source) -> _Kept | None:
    data = derived.load(store, _name(history, source))
    try:
        kept = msgspec.msgpack.decode(data, type=_Kept) if data else None
    except msgspec.DecodeError:
        return None
    if kept is None or (kept.shape, kept.first) != (_SHAPE, history.first) or kept.carried.seq > history.state.seq:
        return None
    return kept


def stamp_of(source: Source) -> tuple[int, int] | None:
    """How large a source is, and when it or what it is read from besides was last written; None if there is none."""
    sidecars = format_of(source.agent).watch.sidecars if is_known(source.agent) else None
    beside = [*(sidecars(source) if sidecars is not None else ()), f"{source.path}-wal"]
    try:
        status = os.stat(source.path)
        times = [os.stat(path).st_mtime_ns for path in beside if os.path.isfile(path)]
    except OSError:
        return None
    return status.st_size, max([status.st_mtime_ns, *times])


def is_up_to_date(store: Store, history: History, source: Source) -> bool:
    """Whether the source is as it was when all of it was brought in."""
    kept, stamp = _load(store, history, source), stamp_of(source)
    return stamp is None or (kept is not None and (kept.size, kept.mtime) == stamp)


def gone_on(store: Store, history: History, source: Source, form: Format) -> tuple[Reading, CarriedOver] | None:
    """What is new in a source, read from where it was left; None if all of it has to be read."""
    kept = _load(store, history, source) if form.growth is not None else None
    if kept is None or form.growth is None or kept.carried.has_own:
        return None
    try:
        if os.stat(source.path).st_size < kept.size or proof(source.path, kept.offset) != kept.proof:
            return None
        reading = form.growth(source, ResumePoint(kept.offset, kept.carried.steps, kept.state))
    except OSError:
        return None
    return None if reading is None else (reading, kept.carried)


def keep(
    store: Store, history: History, source: Source, reading: Reading, before: tuple[int, int] | None,
    carried: CarriedOver | None,
) -> None:  # fmt: skip
    """Remember where it was left. `before` is the stamp of the source before it was read: it may grow any time."""
    mark = reading.mark
    if mark is None or carried is None or before is None:
        return
    try:
        prefix = proof(source.path, mark.offset)
        kept = _Kept(_SHAPE, history.first, *before, mark.offset, mark.state, prefix, carried)
        derived.save(store, _name(history, source), _encode(kept))
    except (OSError, TypeError, OverflowError, UnicodeEncodeError):
        return  # all of it is read the next time
