"""What must hold of whatever a crash left."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tests.store.crashlab.tape import (
    GONE,
    SESSIONS,
    TRASH,
    Book,
)
from turnlog import Home
from turnlog.log.entry import AnyEntry, Fold, Start, Writer
from turnlog.store.files import connect
from turnlog.store.files.disk import Disk

HOME = os.path.join("new", "home")


class Counter:
    """A clock for tests: a millisecond goes by each time somebody looks."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def __call__(self) -> int:
        self.now += 1
        return self.now


def home_at(folder: str, disk: Disk | None = None) -> Home:
    """A home of the file store, with a clock that does not depend on the hour."""
    clock = Counter()
    return Home(connect(folder, clock=clock, disk=disk), clock=clock)


class Violation(AssertionError):
    """A promise that was not kept."""


def check(folder: str, book: Book) -> None:
    """Open what the crash left and hold it against the book. Raises `Violation`."""
    home = home_at(folder)
    listed = {info.id: info for info in home.sessions()}
    deleted = {info.id: info for info in home.sessions(deleted=True)}
    for session_id, places in book.places.items():
        actual = SESSIONS if session_id in listed else TRASH if session_id in deleted else GONE
        _hold(actual in places, f"session {session_id} is in {actual}, not in {' or '.join(sorted(places))}")
        _hold(not (session_id in listed and session_id in deleted), f"session {session_id} is there twice")
    for session_id, info in {**listed, **deleted}.items():
        _hold(session_id in book.places, f"session {session_id} was never made")
        _hold(info.is_readable, f"session {session_id} is listed without its first line")
    for digest, data in book.blobs.items():
        _hold(home.get_blob(digest) == data, f"blob {digest} is not what was put")
    for session_id in deleted:
        home.restore(session_id)
    for session_id in (*listed, *deleted):
        _check_session(folder, home, session_id, book)
    fresh = home.create(id="made after the crash")
    fresh.user("hello")
    home.close()
    again = home_at(folder)
    _hold("made after the crash" in {info.id for info in again.sessions()}, "a new session is not listed")
    again.close()


def _check_session(folder: str, home: Home, session_id: str, book: Book) -> None:
    session = home.resume(session_id)
    entries = list(session.entries())
    check_entries(session_id, entries, book)
    for entry in entries:
        for digest in entry.blobs:
            home.get_blob(digest)
    backwards = [entry.id for entry in session.entries(reverse=True)]
    _hold(backwards[::-1] == [entry.id for entry in entries], f"{session_id} reads differently backwards")
    session.context()
    new = session.user("after the crash")
    _hold(new.seq > entries[-1].seq, f"{session_id}: seq {new.seq} after {entries[-1].seq}")
    top = max((entry.seq for entry in book.entries.get(session_id, {}).values()), default=0)
    _hold(new.seq > top, f"{session_id}: seq {new.seq} was given out before the crash")
    other = home_at(folder)
    later = [entry for entry in other.resume(session_id).entries() if entry.seq < new.seq]
    later = [entry for entry in later if not isinstance(entry, Writer) or entry in entries]
    _hold(later == entries, f"{session_id}: appending changed what was there before")
    _hold(other.resume(session_id).find(new.id) == new, f"{session_id}: what was appended after is not there")
    other.close()


def check_entries(session_id: str, entries: Sequence[AnyEntry], book: Book) -> None:
    """One session's entries against the book."""
    seqs = [entry.seq for entry in entries]
    ids = [entry.id for entry in entries]
    found = dict(zip(ids, entries, strict=True))
    _hold(seqs == sorted(set(seqs)), f"{session_id}: seqs do not increase: {seqs}")
    _hold(len(found) == len(ids), f"{session_id}: an id is there twice: {ids}")
    for entry_id, entry in book.entries.get(session_id, {}).items():
        _hold(entry_id in found, f"{session_id}: acknowledged entry {entry.seq} ({entry.type}) is lost")
        _hold(found[entry_id] == entry, f"{session_id}: entry {entry.seq} changed: {entry} → {found[entry_id]}")
        if entry.parent:
            _hold(entry.parent in seqs, f"{session_id}: entry {entry.seq} lost its parent {entry.parent}")
    for batch in book.batches.get(session_id, ()):
        there = batch & found.keys()
        _hold(not there or there == batch, f"{session_id}: {len(there)} of a batch of {len(batch)}")
    promised = book.entries.get(session_id, {}).keys() | book.tried.get(session_id, frozenset())
    for entry in entries:
        name = entry.session_id if isinstance(entry, Start) else entry.id
        known = book.is_shared or {name, entry.id} & promised or isinstance(entry, (Writer, Fold))
        _hold(known, f"{session_id}: entry {entry.seq} ({entry.id}) was never appended")


def _hold(is_kept: bool, promise: str) -> None:
    if not is_kept:
        raise Violation(promise)
