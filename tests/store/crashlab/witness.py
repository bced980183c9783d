"""Somebody who uses a home, and writes down what was promised."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.store.crashlab.promise import HOME, home_at
from tests.store.crashlab.recorder import Recorder
from tests.store.crashlab.tape import (
    GONE,
    SESSIONS,
    TRASH,
    Tape,
)
from turnlog import Home, Session
from turnlog.log.draft import prepare
from turnlog.log.entry import AnyEntry
from turnlog.session.interior import interior


class Witness:
    """Uses a home and writes into the book what it was promised, when it was promised."""

    def __init__(self, home: Home, tape: Tape, disk: Recorder) -> None:
        self.home = home
        self.tape = tape
        self.disk = disk

    def _may_be(self, session_id: str, *places: str) -> None:
        self.tape.tell(places={**self.tape.book.places, session_id: frozenset(places)})

    def _rely_on(self, session_id: str, entries: Iterable[AnyEntry]) -> None:
        known = self.tape.book.entries
        mine = {**known.get(session_id, {}), **{entry.id: entry for entry in entries}}
        self.tape.tell(entries={**known, session_id: mine})

    def _tries(self, session_id: str, ids: Sequence[str]) -> None:
        book = self.tape.book
        tried = book.tried.get(session_id, frozenset()) | set(ids)
        batches = book.batches.get(session_id, ())
        if len(ids) > 1:
            batches = (*batches, frozenset(ids))
        self.tape.tell(tried={**book.tried, session_id: tried}, batches={**book.batches, session_id: batches})

    def create(self, session_id: str, **fields: Any) -> Session:
        self._may_be(session_id, SESSIONS, GONE)
        self._tries(session_id, [session_id])
        session = self.home.create(id=session_id, **fields)
        self._created(session)
        return session

    def fork(self, session: Session, session_id: str) -> Session:
        self._may_be(session_id, SESSIONS, GONE)
        tried = self.tape.book.tried
        self.tape.tell(tried={**tried, session_id: tried[session.id] | {session_id}})
        fork = session.fork(id=session_id)
        self._created(fork)
        return fork

    def _created(self, session: Session) -> None:
        self._may_be(session.id, SESSIONS)
        self._rely_on(session.id, session.entries())

    def resume(self, session_id: str) -> Session:
        return self.home.resume(session_id)

    def rely_on(self, session: Session, last: AnyEntry) -> None:
        """Everything up to this entry was acknowledged with it."""
        self._rely_on(session.id, [entry for entry in session.entries() if entry.seq <= last.seq])

    def append(self, session: Session, *drafts: AnyEntry, rebase: bool = False) -> None:
        self._tries(session.id, [draft.id for draft in drafts])
        done = session.append(*drafts, rebase=rebase)
        entries = done if isinstance(done, list) else [done]
        # One sync serves the whole file: what stands before these is on the disk with them.
        self._rely_on(session.id, [e for e in session.entries() if e.seq <= entries[-1].seq])

    def begin_to_append(self, session_id: str, *drafts: AnyEntry) -> Callable[[], None]:
        """Write, but do not sync yet: that is what the function does that this returns."""
        self._tries(session_id, [draft.id for draft in drafts])
        log = interior(self.home).store.open(session_id)
        done = log.append([prepare(draft)[0] for draft in drafts], after=1 << 40, head=0)

        def sync() -> None:
            log.sync(done[-1].seq)
            self._rely_on(session_id, done)

        return sync

    def beside(self) -> Witness:
        """Another process, at the same time."""
        disk = type(self.disk)(self.tape)
        return Witness(home_at(os.path.join(self.tape.top, HOME), disk), self.tape, disk)

    def put(self, data: bytes) -> str:
        digest = self.home.put_blob(data)
        self.tape.tell(blobs={**self.tape.book.blobs, digest: data})
        return digest

    def delete(self, session_id: str) -> None:
        self._may_be(session_id, SESSIONS, TRASH)
        self.home.delete(session_id)
        self._may_be(session_id, TRASH)

    def restore(self, session_id: str) -> None:
        self._may_be(session_id, SESSIONS, TRASH)
        self.home.restore(session_id)
        self._may_be(session_id, SESSIONS)

    def purge(self, session_id: str) -> None:
        self._may_be(session_id, *self.tape.book.places[session_id], GONE)
        self.home.purge(session_id)
        self._may_be(session_id, GONE)
