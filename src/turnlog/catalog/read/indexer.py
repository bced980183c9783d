"""Reads what has changed into the catalog. The caller holds the lock."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from turnlog.catalog.index.batch import Batch
from turnlog.catalog.index.columns import clean, path_column
from turnlog.catalog.index.notes import DIRTY, PRICES, UNSCRUBBED, get_note, has_note
from turnlog.catalog.index.settle import settle, shared_by, tokens_of
from turnlog.catalog.index.sqlite.engine import SqliteEngine
from turnlog.catalog.index.sqlite.marked import MarkedSessions, forget_own_values
from turnlog.catalog.index.sqlite.watchlist import OURS, KnownSession, Stamp, Watchlist
from turnlog.catalog.index.sqlite.writer import SqliteWriter
from turnlog.catalog.read import foreign
from turnlog.catalog.read.gone import GoneSessions
from turnlog.catalog.read.job import Job, kept_job, problem_row, reason_of, stamp_to_record, stored_job
from turnlog.catalog.watch.discovery import Discovered, Finder, can_read
from turnlog.catalog.watch.sweep import ABSENT, DANGLING, SPECIAL, Changes, WatchedFile, stamp_of
from turnlog.formats import Source, format_of
from turnlog.layout import TRASH
from turnlog.log.ids import MARKS, handle_of
from turnlog.session.interior import interior
from turnlog.thread.home.handedover import HandedOver

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnlog.catalog.index.rows import SessionRow
    from turnlog.catalog.index.sqlite.database import Database
    from turnlog.catalog.read.helper import Helper
    from turnlog.session import Home

_BULK = 24 << 20
"""If more than this is to be read, it is written in a thread."""
_SOME = 2 << 20
"""The same limit while the first index is made."""
_HELPER_BYTES = 4 << 20
"""If more than this is to be read, a helper process reads too: it takes a tenth of a second to start."""
_UNREADABLE = {DANGLING: "a link that leads nowhere", SPECIAL: "no file, but a pipe or a device"}


class Indexer:
    """One pass over the changes that a sweep found."""

    def __init__(
        self,
        database: Database,
        location: str | None,
        home: Callable[[], Home],
        progress: Callable[[str, int, int], None] | None,
        helper: Helper | None = None,
    ) -> None:
        self._database = database
        self._watchlist = Watchlist(database.connection)
        self._home = home
        self._progress = progress
        self._helper = helper
        self._writer = SqliteWriter(database)
        self.tidy = self._writer.tidy
        self._batch = Batch(SqliteEngine(database.connection), self._writer)
        self._released: set[int] = set()
        self._changed: set[int] = set()
        self._stamps: dict[str, dict[str, str]] = {}
        self._handed = HandedOver(location)
        self._next = 1 + self._watchlist.last()
        self._marked = MarkedSessions(self._batch.db)
        self._marks_changed = not self._marked.is_known
        """Whether marks of other agents' sessions may have changed."""
        self._gone = None if location is None else GoneSessions(location, self._watchlist, self._batch)
        self.read = self.read_bytes = self.gone = 0

    def run(self, changes: Changes, *, most: int | None = None) -> None:
        """Index the changes; what was read is kept, whatever happens to the rest.

        With `most`, new sessions are only announced, and then the newest of them are read, up to that number of
        bytes.
        """
        finder = Finder(self._watchlist, self._batch, is_quick=most is not None)
        jobs = self._jobs(changes, finder, most)
        total = sum(max(job.stamp.size, 0) for job in jobs)
        was_dirty = has_note(self._batch.db, DIRTY)
        try:
            if total > (_BULK if most is None else _SOME):
                self._writer.begin_bulk()
            self._index_jobs(jobs, total, finder)
        finally:
            self._writer.close()
        prices = self._batch.prices
        with self._database.writing() as db:
            engine = SqliteEngine(db)
            if self._gone is not None:
                self._changed |= self._gone.add_from_ledger(db)
            if prices.is_outdated:
                self._changed |= prices.recompute(engine)
            prices.remember(engine)
            self._marked.remember(engine)
            if self._changed or self._released or self.gone or was_dirty:
                if self._gone is not None:
                    self._gone.record(db, None if was_dirty else self._changed)
                settle(engine, None if was_dirty else self._changed, self._released)
        if most is None:
            self._writer.tidy()  # else more may follow
        if has_note(self._batch.db, UNSCRUBBED):
            self._database.scrub()
        self._database.checkpoint()

    def _index_jobs(self, jobs: list[Job], total: int, finder: Finder) -> None:
        self._add_forks(jobs)
        for job in self._read_in_helper(self._helper, jobs, total) if self._helper and total > _HELPER_BYTES else jobs:
            self._count(job, total)
            self._index_job(job)
        if self._progress is not None and jobs:
            self._progress("indexing", total, total)
        self._announce_inner(jobs, finder)
        finder.remember()
        self._apply_marks()

    @property
    def has_unread(self) -> bool:
        """Whether there are sessions that had only a glance, and can be read."""
        return bool(self._watchlist.unread(1, can_read))

    def update_marks(self) -> None:
        """Update the marks of other agents' sessions from a store that keeps no files."""
        self._marks_changed = True
        self.run(Changes())

    def _apply_marks(self) -> None:
        """Apply marks again: a session that was read again has its own title."""
        self._batch.write_out()
        if self._marks_changed:
            self._marked.learn(interior(self._home()).store)
        self._marked.apply(self._batch)
        self._batch.write_out()

    def _add_forks(self, jobs: list[Job]) -> None:
        """Add the forks of rewritten logs: they repeat what was erased there, and are read again whole."""
        there = {job.native for job in jobs if job.source is None}
        for job in jobs:  # grows during iteration
            if job.source is None and job.before is not None and job.before.inode != job.stamp.inode:
                for known in self._watchlist.forks_of(job.native):
                    fork = self._job(known) if known.native not in there else None
                    if fork is not None and fork.before is not None:
                        there.add(known.native)
                        fork.before = fork.before._replace(inode=-1, resume_point=None)
                        jobs.append(fork)

    def _jobs(self, changes: Changes, finder: Finder, most: int | None) -> list[Job]:
        discovered = finder.find(changes)
        if most is not None:
            discovered = self._announce(discovered, finder)
            if not discovered.ours:
                finder.remember()  # all that these folders have is announced
            self._batch.write_out()
        jobs: dict[tuple[str, str, str], Job] = {}
        moved = {native for _, native, _ in discovered.ours}
        for file in changes.files:
            jobs |= {job.key: job for job in self._jobs_of(file, moved, finder)}
        for source in discovered.sources:
            key = source.path, source.key, source.agent
            stamp = stamp_of(source.path)
            if stamp is not None and key not in jobs:
                jobs[key] = Job(
                    source, "", source.path, stamp, self._watchlist.source(source.agent, source.path, source.key)
                )
        for path, native, is_deleted in discovered.ours:
            stamp = stamp_of(path)
            if stamp is not None:
                job = Job(None, native, path, stamp, self._watchlist.own(native), is_deleted=is_deleted)
                jobs[job.key] = job
        for session in changes.grown:
            before = self._watchlist.own(session.listed.id)
            job = stored_job(session, before, "" if before is None else self._watchlist.version_of(before.id))
            jobs[job.key] = job
        for number in changes.gone:
            self._remove(number, is_ours=1)
        for known in () if most is None else self._watchlist.unread(most, can_read):
            agent = OURS if known.is_ours else known.agent or ""
            job = jobs.get((known.path, known.key, agent)) or self._job(known)
            if job is not None:
                jobs[job.key], job.is_unread = job, True
        for source, kept_path in self._gone.only_kept() if self._gone is not None else ():
            job = kept_job(source, kept_path, self._watchlist.source(source.agent, source.path, source.key))
            jobs[job.key] = job
        for job in jobs.values():
            if job.source is not None and not job.is_kept:
                job.parts |= {part: stamp_of(part) or Stamp(ABSENT, 0, 0) for part in finder.parts(job.source)}
        return [job for job in jobs.values() if not self._is_as_before(job)]

    def _is_as_before(self, job: Job) -> bool:
        """Whether a database reports that this session did not change, and only the file looks different."""
        if job.source is None or not job.source.key or (stamps := format_of(job.source.agent).watch.stamps) is None:
            return False
        if job.path not in self._stamps:
            with suppress(OSError):  # reading it tells why
                self._stamps[job.path] = stamps(job.path)
        job.version = self._stamps.get(job.path, {}).get(job.source.key, "")
        if job.before is None or not job.version or job.version != self._watchlist.version_of(job.before.id):
            return False
        for path, stamp in job.parts.items():
            self._watchlist.put_file(self._batch, path, job.source.agent, stamp_to_record(stamp))
        return True

    def _jobs_of(self, file: WatchedFile, moved: set[str], finder: Finder) -> list[Job]:
        """The jobs for sessions of a changed file. Removes those whose own file is gone."""
        sessions = self._watchlist.read_from(file.id)
        jobs: list[Job] = []
        for known in sessions:
            id, native, is_ours, agent, own, key = known
            if stamp_of(own) is None:
                if self._gone is not None and not is_ours:
                    jobs += self._jobs_of_gone(self._gone, known, file.path)
                elif own == file.path and native not in moved:
                    self._remove(id, is_ours)
                continue
            keys = finder.keys.get((agent or "", own))
            if keys and key not in keys:
                self._remove(id, is_ours)  # others in the same file can be read, so this one was deleted
                continue
            if (job := self._job(known)) is not None:
                jobs.append(job)
        stamp = stamp_of(file.path)
        if stamp is None:
            self._watchlist.drop_file(self._batch, file.id)
        elif not sessions:
            self._watchlist.put_stamp(self._batch, file.id, stamp_to_record(stamp))
        return jobs

    def _jobs_of_gone(self, gone: GoneSessions, known: KnownSession, changed: str) -> list[Job]:
        """The job for a session whose file is gone, if it is kept and new. Removes it if it is not kept."""
        source = Source(known.agent or "", known.path, known.key)
        kept_path = gone.kept_at(known.id, source, changed)
        if kept_path is None:
            self._remove(known.id, known.is_ours)
        return [kept_job(source, kept_path, self._watchlist.session(known.id))] if kept_path else []

    def _job(self, known: KnownSession) -> Job | None:
        """The job for a known session; None if it cannot be read."""
        id, native, is_ours, agent, path, key = known
        if not path:
            return None  # its store reports what has changed
        stamp = stamp_of(path)
        if stamp is None:
            if self._gone is not None and not is_ours:
                return next(iter(self._jobs_of_gone(self._gone, known, path)), None)
            self._remove(id, is_ours)
            return None
        if not is_ours and (agent is None or not can_read(agent)):
            return None
        source = None if is_ours or agent is None else Source(agent, path, key)
        is_deleted = bool(is_ours) and os.path.basename(os.path.dirname(path)) == TRASH
        return Job(source, native, path, stamp, self._watchlist.session(id), is_deleted=is_deleted)

    def _announce(self, discovered: Discovered, finder: Finder) -> Discovered:
        """Announce new sessions, to be read later. Returns those that have to be read now."""
        moved = discovered.ours
        if discovered.sources or discovered.ours:
            from turnlog.catalog.read.announcer import Announcer  # what only grew needs none

            announcer = Announcer(self._watchlist, self._batch, self._home, self._next)
            for source in discovered.sources:
                announcer.announce(source, finder.parts(source))
            moved = announcer.announce_ours(discovered.ours)
            self._next = announcer.next
        return Discovered([], moved)

    def _announce_inner(self, jobs: list[Job], finder: Finder) -> None:
        """Announce other sessions in files that were announced by name: an agent may keep subagents inside."""
        inner: list[Source] = []
        for job in jobs:
            if job.is_unread and job.source is not None and job.stamp.size >= 0:
                from turnlog.catalog.glance.survey import QUICK  # what only grew needs none

                sources = format_of(job.source.agent).find(job.path) if job.source.agent in QUICK else ()
                inner += [
                    source
                    for source in sources
                    if source.key and not self._watchlist.has_source(source.agent, source.path, source.key)
                ]
        self._announce(Discovered(inner, []), finder)

    def _remove(self, id: int, is_ours: int) -> None:
        """Remove a session whose file is gone; texts of our own sessions are scrubbed as well."""
        self._batch.mark_dirty()
        if is_ours:
            self._marks_changed = True
            self._batch.flag(UNSCRUBBED)
        self._released |= tokens_of(self._batch.db, id)
        if is_ours or self._gone is None:
            self._watchlist.drop_session(self._batch, id)
        else:
            self._watchlist.forget_said(self._batch, id)
        self.gone += 1

    def _register(self, job: Job) -> int:
        """The number of a session, which from now on counts as being read."""
        before = job.before
        if before is None:
            session, self._next = self._next, self._next + 1
            self._begin(session, job)
        else:
            session = before.id
            self._batch.mark_dirty()
            self._released |= shared_by(self._batch.db, [session])  # they may be missing afterwards
            if job.source is None and before.inode != job.stamp.inode:
                self._batch.flag(UNSCRUBBED)  # the log was rewritten: something may have been erased in it
        self._changed.add(session)
        self._marks_changed = self._marks_changed or (job.source is None and job.native == MARKS)
        return session

    def _index_job(self, job: Job) -> None:
        session = self._register(job)
        try:
            row = self._read(job, session)
        except Exception as error:
            # Whatever the error is, the session is listed with the reason, and the others are read.
            if self._writer.has_failed:
                raise
            row = problem_row(job, reason_of(error))
        self._put(job, session, row)

    def _put(self, job: Job, session: int, row: SessionRow) -> None:
        """Write the row of a session that was read."""
        row["stamp"] = "" if row.get("problem") else job.version
        row.setdefault("ending", "")
        if job.source is None:
            row["is_deleted"] = job.is_deleted
            row["path"] = path_column(job.path)
        self._batch.put(session, row)
        if "title" in row:
            forget_own_values(self._batch, session)
        is_sure = row.get("mark") is not None
        parts = {path: stamp_to_record(stamp, is_sure=is_sure) for path, stamp in job.parts.items()}
        self._watchlist.put_parts(self._batch, session, job.source.agent if job.source is not None else OURS, parts)

    def _count(self, job: Job, total: int) -> None:
        if self._progress is not None:
            self._progress("indexing", self.read_bytes, total)
        self.read += 1
        self.read_bytes += max(job.stamp.size, 0)

    def _read_in_helper(self, helper: Helper, jobs: list[Job], total: int) -> list[Job]:
        """Let the helper process read the jobs that it can. Returns the others."""
        from turnlog.catalog.read.helper import HelperEnded

        theirs, left = dict[int, Job](), list[Job]()
        for job in jobs:
            if not self._is_for_helper(job):
                left.append(job)
                continue
            session = self._register(job)
            theirs[session] = job
            if job.before is not None:
                self._batch.drop_spent(session, 0)
                self._batch.drop_used(session, 0)
        try:
            for piece in helper.read(theirs, get_note(self._batch.db, PRICES)) if theirs else ():
                self._batch.add_rows(piece.docs, piece.spent, piece.used, piece.size)
                for session, columns, problem in piece.finished:
                    job = theirs.pop(session)
                    self._count(job, total)
                    row = cast("SessionRow", columns | {"is_deleted": False})
                    self._put(job, session, problem_row(job, problem) if problem else row)
                if piece.prices is not None:
                    self._batch.prices.add(piece.prices)
        except HelperEnded:
            self._batch.write_out()
            for session, job in theirs.items():
                job.before = self._watchlist.session(session)  # it may have been read in part
        return [*left, *theirs.values()]

    def _is_for_helper(self, job: Job) -> bool:
        """Whether a session is another agent's, in a file, and has no texts in the index."""
        if job.source is None or job.is_kept or job.stamp.size < 0:
            return False
        return job.before is None or (job.is_unread and next(iter(self._batch.docs(job.before.id)), None) is None)

    def _begin(self, session: int, job: Job) -> None:
        self._batch.mark_dirty()
        name, native, agent, key = handle_of(job.native), job.native, None, ""
        if job.source is not None:
            native = clean(os.path.basename(job.path).partition(".")[0])
            name, agent, key = f"{job.source.agent}:{native}", job.source.agent, job.source.key
        self._watchlist.begin(self._batch, session, name, native, agent, job.path, key)

    def _read(self, job: Job, session: int) -> SessionRow:
        if job.stamp.size in _UNREADABLE:
            raise OSError(0, _UNREADABLE[job.stamp.size])
        if job.source is None:
            from turnlog.catalog.read import own  # slow to import, and not needed for other agents' sessions

            store = interior(self._home()).store
            return own.read_session(self._batch, store, job.native, session, job.stamp, job.before, path=job.path)
        if job.is_kept and self._gone is not None:
            return self._gone.read(job.source, session, job.before)
        row = foreign.read_session(self._batch, job.source, session, job.stamp, job.before, self._handed)
        return {**row, "is_deleted": False}
