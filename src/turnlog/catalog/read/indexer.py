"""Reads what has changed into the catalog. Whoever runs it holds the lock."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from turnlog.catalog.index import settle
from turnlog.catalog.index.batch import Batch
from turnlog.catalog.index.texts import clean, path_of, place
from turnlog.catalog.read import foreign as theirs
from turnlog.catalog.read.foreign import Before
from turnlog.catalog.watch.discovery import Finder, can_read
from turnlog.catalog.watch.sweep import ABSENT, DANGLING, OURS, SPECIAL, YOUNG_NS, Changes, Known, Stamp, stamp_of
from turnlog.errors import TurnlogError
from turnlog.formats import Source, format_of
from turnlog.log.ids import handle_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnlog.catalog.index.database import Database
    from turnlog.session import Home

_BULK = 24 << 20
"""More than this to read: FTS5 puts its segments together later, bit by bit, and not on the way."""
_SEGMENTS = 200
"""So many of one size are searched one by one, which takes milliseconds, before FTS5 has to put them together."""
_SESSION = "INSERT INTO sessions (id, name, native, is_ours, agent, path, key) VALUES (?, ?, ?, ?, ?, ?, ?)"
_OF_SESSION = (("sessions", "id"), ("spent", "session"), ("quarters", "session"), ("parts", "session"))
_UNSCRUBBED = "unscrubbed"
"""Noted with what is removed, and taken away when nothing of it is left in the file: who is killed goes on with it."""
_UNREADABLE = {DANGLING: "a link that leads nowhere", SPECIAL: "no file, but a pipe or a device"}


class _Job:
    """A session to be read."""

    def __init__(self, source: Source | None, native: str, path: str, stamp: Stamp, before: Before | None) -> None:
        self.source = source
        self.native = native
        self.path = path
        self.stamp = stamp
        self.before = before
        self.is_deleted = False
        self.told = ""
        """What its database says of when it changed."""
        self.parts: dict[str, Stamp] = {path: stamp}


class Indexer:
    """One pass over what a sweep found."""

    def __init__(
        self, database: Database, home: Callable[[], Home], progress: Callable[[str, int, int], None] | None
    ) -> None:
        self._database = database
        self._db = database.connection
        self._home = home
        self._progress = progress
        self._batch = Batch(database)
        self._loose: set[int] = set()
        self._changed: set[int] = set()
        self._stamps: dict[str, dict[str, str]] = {}
        self._next = 1 + (self._db.execute("SELECT max(id) FROM sessions").fetchone()[0] or 0)
        self.read = self.read_bytes = self.gone = 0

    def run(self, changes: Changes) -> None:
        """All of it; what was read is there, whatever happens to the rest."""
        finder = Finder(self._db, self._batch)
        jobs = self._jobs(changes, finder)
        total = sum(max(job.stamp.size, 0) for job in jobs)
        was_dirty = settle.is_dirty(self._db)
        is_bulk = total > _BULK
        if is_bulk:
            self._tune(automerge=0)
            self._batch.begin_many()
        try:
            self._take_all(jobs, total, finder)
        finally:
            self._batch.close()
        with self._database.writing() as db:
            if self._batch.prices.is_other:
                self._changed |= self._batch.prices.again(db)
            self._batch.prices.remember(db)
            if self._changed or self._loose or self.gone or was_dirty:
                settle.settle(db, None if was_dirty else self._changed, self._loose)
        if is_bulk or self._is_untidy():
            self._tune(automerge=4)
        if self._db.execute("SELECT 1 FROM meta WHERE key = ?", (_UNSCRUBBED,)).fetchone() is not None:
            self._database.scrub()
            with self._database.writing() as db:
                db.execute("DELETE FROM meta WHERE key = ?", (_UNSCRUBBED,))
        self._database.checkpoint()

    def _take_all(self, jobs: list[_Job], total: int, finder: Finder) -> None:
        for job in jobs:
            if self._progress is not None:
                self._progress("indexing", self.read_bytes, total)
            self._take(job)
            self.read += 1
            self.read_bytes += max(job.stamp.size, 0)
        if self._progress is not None and jobs:
            self._progress("indexing", total, total)
        finder.remember()
        self._batch.end()

    # ── what there is to do ───────────────────────────────────────────────────────────────────────

    def _jobs(self, changes: Changes, finder: Finder) -> list[_Job]:
        found = finder.look(changes)
        jobs: dict[tuple[str, str, str], _Job] = {}
        moved = {native for _, native, _ in found.ours}
        for known in changes.files:
            for job in self._known(known, moved, finder):
                jobs[job.path, job.source.key if job.source else "", job.source.agent if job.source else ""] = job
        for source in found.sources:
            key = source.path, source.key, source.agent
            stamp = stamp_of(source.path)
            if stamp is not None and key not in jobs:
                jobs[key] = _Job(source, "", source.path, stamp, self._before(source.path, source.key, source.agent))
        for path, native, is_deleted in found.ours:
            stamp = stamp_of(path)
            if stamp is not None:
                job = _Job(None, native, path, stamp, self._before_ours(native))
                job.is_deleted = is_deleted
                jobs[path, "", OURS] = job
        for job in jobs.values():
            if job.source is not None:
                job.parts |= {part: stamp_of(part) or Stamp(ABSENT, 0, 0) for part in finder.parts(job.source)}
        return [job for job in jobs.values() if not self._is_as_before(job)]

    def _is_as_before(self, job: _Job) -> bool:
        """Whether a database says that this session of it did not change; then only the file looks different."""
        stamps = format_of(job.source.agent).watch.stamps if job.source is not None else None
        if stamps is None or job.source is None or not job.source.key:
            return False
        if job.path not in self._stamps:
            self._stamps[job.path] = stamps(job.path)
        job.told = self._stamps[job.path].get(job.source.key, "")
        if job.before is None or not job.told or job.told != self._told(job.before.id):
            return False
        for path, stamp in job.parts.items():
            self._batch.stamp(path, job.source.agent, _sure(stamp, False))
        return True

    def _told(self, id: int) -> str:
        return self._db.execute("SELECT stamp FROM sessions WHERE id = ?", (id,)).fetchone()[0]

    def _known(self, known: Known, moved: set[str], finder: Finder) -> list[_Job]:
        """The sessions that a file which changed belongs to; those whose own file is gone leave the catalog."""
        rows = self._db.execute(
            "SELECT s.id, s.native, s.is_ours, s.agent, s.path, s.key FROM parts p JOIN sessions s ON s.id = p.session "
            "WHERE p.file = ?",
            (known.id,),
        ).fetchall()
        jobs: list[_Job] = []
        for id, native, is_ours, agent, path, key in rows:
            own = path_of(path)
            stamp = stamp_of(own)
            if stamp is None:
                if own == known.path and not (is_ours and native in moved):
                    self._remove(id)
                continue
            keys = finder.keys.get((agent or "", own))
            if keys and key not in keys:
                self._remove(id)  # the others in the same file can be read, so it was deleted there
                continue
            if not is_ours and not can_read(agent):
                continue
            source = None if is_ours else Source(agent, own, key)
            job = _Job(source, native, own, stamp, self._before_id(id))
            job.is_deleted = bool(is_ours) and os.path.basename(os.path.dirname(own)) == "trash"
            jobs.append(job)
        if stamp_of(known.path) is None:
            self._batch.do("DELETE FROM files WHERE id = ?", (known.id,))
            self._batch.do("DELETE FROM parts WHERE file = ?", (known.id,))
        elif not rows:
            stamp = stamp_of(known.path)
            if stamp is not None:
                self._batch.do(
                    "UPDATE files SET size = ?, mtime = ?, inode = ? WHERE id = ?", (*_sure(stamp, False), known.id)
                )
        return jobs

    def _before(self, path: str, key: str, agent: str) -> Before | None:
        row = self._db.execute(
            "SELECT id FROM sessions WHERE path = ? AND key = ? AND agent = ? AND NOT is_ours",
            (place(path), key, agent),
        ).fetchone()
        return None if row is None else self._before_id(row[0])

    def _before_ours(self, native: str) -> Before | None:
        row = self._db.execute("SELECT id FROM sessions WHERE native = ? AND is_ours", (native,)).fetchone()
        return None if row is None else self._before_id(row[0])

    def _before_id(self, id: int) -> Before:
        row = self._db.execute(
            "SELECT s.id, s.native, s.size, s.title, s.preview, s.mark, coalesce(f.inode, 0) FROM sessions s "
            "LEFT JOIN files f ON f.path = s.path WHERE s.id = ?",
            (id,),
        ).fetchone()
        return Before(*row)

    def _remove(self, id: int) -> None:
        """A session whose file is gone; what was said in one of ours is to be gone as well."""
        self._batch.do(settle.MARK_DIRTY)
        if self._db.execute("SELECT is_ours FROM sessions WHERE id = ?", (id,)).fetchone()[0]:
            self._batch.do("INSERT OR IGNORE INTO meta (key, value) VALUES (?, 1)", (_UNSCRUBBED,))
        rows = self._db.execute("SELECT token FROM spent WHERE session = ?", (id,))
        self._loose |= {row[0] for row in rows}
        for (doc,) in self._db.execute("SELECT id FROM docs WHERE session = ?", (id,)).fetchall():
            self._batch.forget(doc)
        for table, column in _OF_SESSION:
            self._batch.do(f"DELETE FROM {table} WHERE {column} = ?", (id,))
        self.gone += 1

    # ── one session ───────────────────────────────────────────────────────────────────────────────

    def _take(self, job: _Job) -> None:
        before = job.before
        if before is None:
            session, self._next = self._next, self._next + 1
            self._begin(session, job)
        else:
            session = before.id
            self._loosen(session)
        self._changed.add(session)
        try:
            row = self._read(job, session)
        except Exception as error:
            # Whatever a reader stumbles over, its session is listed with the reason, and the others are read.
            if self._batch.has_failed:
                raise
            row = self._problem(job, error)
        row["stamp"] = "" if row.get("problem") else job.told
        if job.source is None:
            row["is_deleted"] = job.is_deleted
            row["path"] = place(job.path)
        columns = ", ".join(f"{name} = ?" for name in row)
        self._batch.do(f"UPDATE sessions SET {columns} WHERE id = ?", (*row.values(), session))
        self._batch.do("DELETE FROM parts WHERE session = ?", (session,))
        is_sure = row.get("mark") is not None
        agent = job.source.agent if job.source is not None else OURS
        for path, stamp in job.parts.items():
            self._batch.stamp(path, agent, _sure(stamp, is_sure))
            self._batch.do("INSERT OR IGNORE INTO parts SELECT ?, id FROM files WHERE path = ?", (session, place(path)))

    def _begin(self, session: int, job: _Job) -> None:
        self._batch.do(settle.MARK_DIRTY)
        if job.source is None:
            values = (handle_of(job.native), job.native, 1, None)
        else:
            stem = clean(os.path.basename(job.path).partition(".")[0])
            values = (f"{job.source.agent}:{stem}", stem, 0, job.source.agent)
        key = job.source.key if job.source is not None else ""
        self._batch.do(_SESSION, (session, *values, place(job.path), key))

    def _loosen(self, session: int) -> None:
        """What it had in common with others may be gone from it afterwards."""
        self._batch.do(settle.MARK_DIRTY)
        rows = self._db.execute(
            "SELECT token FROM spent p WHERE session = ? AND EXISTS "
            "(SELECT 1 FROM spent o WHERE o.token = p.token AND o.session <> p.session)",
            (session,),
        )
        self._loose |= {row[0] for row in rows}

    def _read(self, job: _Job, session: int) -> dict[str, Any]:
        if job.stamp.size in _UNREADABLE:
            raise OSError(0, _UNREADABLE[job.stamp.size])
        if job.source is None:
            from turnlog.catalog.read import own as ours  # takes longer to load than what another agent's session needs

            return ours.take(
                self._db,
                self._batch,
                self._home().store,
                job.native,
                session,
                job.stamp,
                job.before,
                path=job.path,
            )
        return theirs.take(self._db, self._batch, job.source, session, job.stamp, job.before)

    def _problem(self, job: _Job, error: Exception) -> dict[str, Any]:
        told = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        if not isinstance(error, (OSError, TurnlogError)):
            told = f"{type(error).__name__}: {told}"
        row: dict[str, Any] = {"problem": clean(f"it cannot be read: {told}"), "size": max(job.stamp.size, 0)}
        if job.before is None:
            row["updated"] = job.stamp.mtime // 1_000_000
        return row

    # ── the words ─────────────────────────────────────────────────────────────────────────────────

    def _tune(self, *, automerge: int) -> None:
        with self._database.writing() as db:
            if not automerge:
                db.execute("INSERT INTO words (words, rank) VALUES ('crisismerge', ?)", (_SEGMENTS,))
                db.execute("INSERT INTO words (words, rank) VALUES ('hashsize', ?)", (16 << 20,))
            db.execute("INSERT INTO words (words, rank) VALUES ('automerge', ?)", (automerge,))

    def _is_untidy(self) -> bool:
        """Whether a first indexing was interrupted."""
        row = self._db.execute("SELECT v FROM words_config WHERE k = 'automerge'").fetchone()
        return row is not None and row[0] == 0


def _sure(stamp: Stamp, is_sure: bool) -> Stamp:
    """A stamp that differs next time if the file is so young that it may change without looking different."""
    if is_sure or stamp.size < 0 or time.time_ns() - stamp.mtime > YOUNG_NS:
        return stamp
    return stamp._replace(mtime=0)
