"""Where the last import of a source stopped, so that the next one costs only what is new.

Derived: without it, all of the source is read again.
"""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from turnlog.exchange.importing.turnclaim import HookTurn
from turnlog.formats import Format, Reading, ResumePoint, Source, format_of, is_known
from turnlog.interop.proof import proof
from turnlog.log.digest import blake2b
from turnlog.log.entry import Alias
from turnlog.log.usage import Usage
from turnlog.store import IMPORTED, Store, derived
from turnlog.thread.history import History

_VERSION = 2
"""The version of `_SavedState`. States of other versions are ignored."""


class ResumeState(Struct, kw_only=True, rename={"content_counts": "marks"}):
    """What an import has to know at the resume point of a source. `SourceIndex` and `KeyedImport` say what it is."""

    seq: int = 0
    """The last entry of the log that is taken into account."""
    steps: int = 0
    seqs: dict[str, int] = {}
    """Only of the records behind the resume point."""
    booked: dict[str, Usage] = {}
    sizes: dict[int, int] = {}
    unpaid: list[int] = []
    late: dict[str, Usage] = {}
    edits: dict[int, int] = {}
    cursor: int = 0
    latest: datetime | None = None
    turns: list[HookTurn] = []
    turn: str | None = None
    alias: Alias | None = None
    moved: int = 0
    content_counts: dict[str, int] = {}
    has_own: bool = False


class _SavedState(Struct, rename={"version": "shape", "state": "carried", "format_state": "state"}):
    version: int
    first: str
    """The first entry of the log."""
    size: int
    """The size of the source when all of it had been imported."""
    mtime: int
    """When the source, or a file beside it that it is read from, was last written."""
    offset: int
    format_state: Any
    proof: bytes
    state: ResumeState


_encode = msgspec.msgpack.Encoder().encode


def _cache_name(history: History, source: Source) -> str:
    what = "\n".join((history.id, source.path, source.key)).encode("utf-8", "surrogateescape")
    return f"{IMPORTED}{blake2b(what, digest_size=16).hexdigest()}"


def _load(store: Store, history: History, source: Source) -> _SavedState | None:
    data = derived.load(store, _cache_name(history, source))
    try:
        saved = msgspec.msgpack.decode(data, type=_SavedState) if data else None
    except msgspec.DecodeError:
        return None
    if saved is None or (saved.version, saved.first) != (_VERSION, history.first):
        return None
    return saved if saved.state.seq <= history.state.seq else None


def stamp_of(source: Source) -> tuple[int, int] | None:
    """The size of a source, and when it or a file that it is read from was last written; None if it does not exist."""
    sidecars = format_of(source.agent).watch.sidecars if is_known(source.agent) else None
    beside = [*(sidecars(source) if sidecars is not None else ()), f"{source.path}-wal"]
    try:
        status = os.stat(source.path)
        times = [os.stat(path).st_mtime_ns for path in beside if os.path.isfile(path)]
    except OSError:
        return None
    return status.st_size, max([status.st_mtime_ns, *times])


def is_up_to_date(store: Store, history: History, source: Source) -> bool:
    """Whether the source is as it was when all of it was imported."""
    saved, stamp = _load(store, history, source), stamp_of(source)
    return stamp is None or (saved is not None and (saved.size, saved.mtime) == stamp)


def resumed_reading(store: Store, history: History, source: Source, form: Format) -> tuple[Reading, ResumeState] | None:
    """Read a source from the resume point of the last import; None if all of it has to be read."""
    saved = _load(store, history, source) if form.growth is not None else None
    if saved is None or form.growth is None or saved.state.has_own:
        return None
    try:
        if os.stat(source.path).st_size < saved.size or proof(source.path, saved.offset) != saved.proof:
            return None
        reading = form.growth(source, ResumePoint(saved.offset, saved.state.steps, saved.format_state))
    except OSError:
        return None
    return None if reading is None else (reading, saved.state)


def save_resume_state(
    store: Store, history: History, source: Source, reading: Reading, stamp: tuple[int, int] | None,
    state: ResumeState | None,
) -> None:  # fmt: skip
    """Save where an import stopped. `stamp` is that of the source before it was read: it may grow any time."""
    point = reading.mark
    if point is None or state is None or stamp is None:
        return
    try:
        prefix = proof(source.path, point.offset)
        saved = _SavedState(_VERSION, history.first, *stamp, point.offset, point.state, prefix, state)
        derived.save(store, _cache_name(history, source), _encode(saved))
    except (OSError, TypeError, OverflowError, UnicodeEncodeError):
        return  # all of it is read the next time
