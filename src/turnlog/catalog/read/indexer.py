"""Reads what has changed into the catalog. Whoever runs it holds the lock."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.batch import Batch
from turnlog.catalog.index.cards import ms_of
from turnlog.catalog.index.marked import MarkedSessions
from turnlog.catalog.index.notes import DIRTY, noted
from turnlog.catalog.index.prices import KEY
from turnlog.catalog.index.settle import settle, shared_by, tokens_of
from turnlog.catalog.index.sqlite.database import UNSCRUBBED
from turnlog.catalog.index.sqlite.engine import SqliteEngine
from turnlog.catalog.index.sqlite.watchlist import OURS, Stamp, Watchlist
from turnlog.catalog.index.sqlite.writer import SqliteWriter
from turnlog.catalog.index.texts import clean, path_column
from turnlog.catalog.read import foreign
from turnlog.catalog.read.gone import GoneSessions
from turnlog.catalog.read.job import Job, kept_job, problem_row, reason_of, sure
from turnlog.catalog.watch.discovery import Discovered, Finder, can_read
from turnlog.catalog.watch.sweep import ABSENT, DANGLING, SPECIAL, Changes, WatchedFile, stamp_of
from turnlog.formats import Source, format_of
from turnlog.layout import TRASH
from turnlog.log.ids import MARKS, handle_of
from turnlog.session.interior import interior
from turnlog.thread.handed import HandedOver

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnlog.catalog.index.sqlite.database import Database
    from turnlog.catalog.read.helper import Helper
    from turnlog.session import Home

_BULK = 24 << 20
"""More than this to read is written in a thread."""
_SOME = 2 << 20
"""The same of what belongs to a first index."""
_APART = 4 << 20
"""More than this is read by two processes: the second one takes a tenth of a second to start."""
_UNREADABLE = {DANGLING: "a link that leads nowhere", SPECIAL: "no file, but a pipe or a device"}


class Indexer:
    """One pass over what a sweep found."""

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
        self._loose: set[int] = set()
        self._changed: set[int] = set()
        self._stamps: dict[str, dict[str, str]] = {}
        self._handed = HandedOver(location)
        self._next = 1 + self._watchlist.last()
        self._marked = MarkedSessions(self._batch.db)
        self._learns = not self._marked.is_known
        """Whether what was said of other agents' sessions may have changed."""
        self._gone = None if location is None else GoneSessions(location, self._watchlist, self._batch)
        self.read = self.read_bytes = self.gone = 0

    def run(self, changes: Changes, *, most: int | None = None) -> None:
        """All of it; what was read is there, whatever happens to the rest.

        With `most`, sessions that are new are only announced, and then the newest of those are read, up to so many
        bytes.
        """
        finder = Finder(self._watchlist, self._batch, is_quick=most is not None)
        jobs = self._jobs(changes, finder, most)
        total = sum(max(job.stamp.size, 0) for job in jobs)
        was_dirty = noted(self._batch.db, DIRTY) is not None
        if total > (_BULK if most is None else _SOME):
            self._writer.begin_many()
        try:
            self._take_all(jobs, total, finder)
        finally:
            self._writer.close()
        prices = self._batch.prices
        with self._database.writing() as db:
            engine = SqliteEngine(db)
            if self._gone is not None:
                self._changed |= self._gone.recall(db)
            if prices.is_other:
                self._changed |= prices.again(engine)
            prices.remember(engine)
            self._marked.remember(engine)
            if self._changed or self._loose or self.gone or was_dirty:
                if self._gone is not None:
                    self._gone.write_down(db, None if was_dirty else self._changed)
                settle(engine, None if was_dirty else self._changed, self._loose)
        if most is None:
            self._writer.tidy()  # else there may be more to come
        if noted(self._batch.db, UNSCRUBBED) is not None:
            self._database.scrub()
        self._database.checkpoint()

    def _take_all(self, jobs: list[Job], total: int, finder: Finder) -> None:
        self._add_forks(jobs)
        for job in self._take_apart(self._helper, jobs, total) if self._helper and total > _APART else jobs:
            self._count(job, total)
            self._take(job)
        if self._progress is not None and jobs:
            self._progress("indexing", total, total)
        self._announce_inner(jobs, finder)
        self._mark()

    def learn(self) -> None:
        """Take in what was said of other agents' sessions in a store that keeps no files."""
        self._learns = True
        self.run(Changes())

    def _mark(self) -> None:
        """A session that was read again reports its own title: titles that people set override it."""
        self._batch.flush()
        self._writer.wait()
        if self._learns:
            self._marked.learn(interior(self._home()).store)
        self._marked.apply(self._batch)
        self._writer.wait()

    def _add_forks(self, jobs: list[Job]) -> None:
        """Where a log was written anew, its forks repeat what was erased in it: they are read again, whole."""
        there = {job.native for job in jobs if job.source is None}
        for job in jobs:  # grows while it is gone through
            if job.source is None and job.before is not None and job.before.inode != job.stamp.inode:
                for id, native, is_ours, agent, path, key in self._watchlist.forks_of(job.native):
                    fork = self._job(id, native, is_ours, agent, path, key) if native not in there else None
                    if fork is not None and fork.before is not None:
                        there.add(native)
                        fork.before = fork.before._replace(inode=-1, mark=None)
                        jobs.append(fork)

    # ── what there is to do ───────────────────────────────────────────────────────────────────────

    def _jobs(self, changes: Changes, finder: Finder, most: int | None) -> list[Job]:
        discovered = finder.look(changes)
        if most is not None:
            discovered = self._announce(discovered, finder)
        jobs: dict[tuple[str, str, str], Job] = {}
        moved = {native for _, native, _ in discovered.ours}
        for file in changes.files:
            for job in self._known(file, moved, finder):
                jobs[job.path, job.source.key if job.source else "", job.source.agent if job.source else ""] = job
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
                job = Job(None, native, path, stamp, self._watchlist.own(native))
                job.is_deleted = is_deleted
                jobs[path, "", OURS] = job
        for one, is_deleted, ends in changes.grown:
            before, at = self._watchlist.own(one.id), one.last.at if one.last is not None else None
            said = "" if before is None else self._watchlist.stamp_of(before.id)
            is_same = said.startswith(f"{one.first} ") and said.rpartition(" ")[2] == ends.rpartition(" ")[2]
            is_other = before is not None and not is_same
            job = Job(None, one.id, "", Stamp(one.size_bytes, (ms_of(at) or 0) * 1_000_000, is_other), before)
            job.is_deleted, job.told, job.parts = is_deleted, ends, {}
            jobs["", one.id, OURS] = job
        for number in changes.gone:
            self._remove(number, is_ours=1)
        for id, native, is_ours, agent, path, key in () if most is None else self._watchlist.unread(most):
            job = self._job(id, native, is_ours, agent, path, key)
            if job is not None:
                jobs.setdefault((path, key, OURS if is_ours else agent or ""), job).is_unread = True
        for source, place in self._gone.only_kept() if self._gone is not None else ():
            before = self._watchlist.source(source.agent, source.path, source.key)
            jobs[source.path, source.key, source.agent] = kept_job(source, place, before)
        for job in jobs.values():
            if job.source is not None and not job.is_kept:
                job.parts |= {part: stamp_of(part) or Stamp(ABSENT, 0, 0) for part in finder.parts(job.source)}
        return [job for job in jobs.values() if not self._is_as_before(job)]

    def _is_as_before(self, job: Job) -> bool:
        """Whether a database says that this session of it did not change; then only the file looks different."""
        stamps = format_of(job.source.agent).watch.stamps if job.source is not None else None
        if stamps is None or job.source is None or not job.source.key:
            return False
        if job.path not in self._stamps:
            self._stamps[job.path] = stamps(job.path)
        job.told = self._stamps[job.path].get(job.source.key, "")
        if job.before is None or not job.told or job.told != self._watchlist.stamp_of(job.before.id):
            return False
        for path, stamp in job.parts.items():
            self._watchlist.put_file(self._batch, path, job.source.agent, sure(stamp, False))
        return True

    def _known(self, file: WatchedFile, moved: set[str], finder: Finder) -> list[Job]:
        """The sessions that a file which changed belongs to; those whose own file is gone leave the catalog."""
        sessions = self._watchlist.read_from(file.id)
        jobs: list[Job] = []
        for id, native, is_ours, agent, own, key in sessions:
            stamp = stamp_of(own)
            if stamp is None:
                if self._gone is not None and agent is not None and not is_ours:
                    place = self._gone.kept_at(id, Source(agent, own, key), file.path)
                    if place is None:
                        self._remove(id, is_ours)
                    elif place:
                        jobs.append(kept_job(Source(agent, own, key), place, self._watchlist.session(id)))
                elif own == file.path and native not in moved:
                    self._remove(id, is_ours)
                continue
            keys = finder.keys.get((agent or "", own))
            if keys and key not in keys:
                self._remove(id, is_ours)  # the others in the same file can be read, so it was deleted there
                continue
            job = self._job(id, native, is_ours, agent, own, key)
            if job is not None:
                jobs.append(job)
        stamp = stamp_of(file.path)
        if stamp is None:
            self._watchlist.drop_file(self._batch, file.id)
        elif not sessions:
            self._watchlist.put_stamp(self._batch, file.id, sure(stamp, False))
        return jobs

    def _job(self, id: int, native: str, is_ours: int, agent: str | None, path: str, key: str) -> Job | None:
        """A session that is known, to be read; None where that cannot be."""
        stamp = stamp_of(path)
        if stamp is None:
            self._remove(id, is_ours)
            return None
        if not is_ours and (agent is None or not can_read(agent)):
            return None
        source = None if is_ours or agent is None else Source(agent, path, key)
        job = Job(source, native, path, stamp, self._watchlist.session(id))
        job.is_deleted = bool(is_ours) and os.path.basename(os.path.dirname(path)) == TRASH
        return job

    def _announce(self, discovered: Discovered, finder: Finder) -> Discovered:
        """Note what is new with what a glance tells, to be read later. Gives what has to be read now."""
        moved = discovered.ours
        if discovered.sources or discovered.ours:
            from turnlog.catalog.read.announcer import Announcer  # what only grew needs none

            announcer = Announcer(self._watchlist, self._batch, self._home, self._next)
            for source in discovered.sources:
                announcer.take(source, finder.parts(source))
            moved = announcer.take_ours(discovered.ours)
            self._next = announcer.next
        if not moved:
            finder.remember()
        self._batch.flush()
        self._writer.wait()
        return Discovered([], moved)

    def _announce_inner(self, jobs: list[Job], finder: Finder) -> None:
        """What else is in files that were announced by their names: an agent may keep subagents inside."""
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
        """A session whose file is gone; what was said in one of ours is to be gone as well."""
        self._batch.mark_dirty()
        if is_ours:
            self._learns = True
            self._batch.flag(UNSCRUBBED)
        self._loose |= tokens_of(self._batch.db, id)
        if is_ours or self._gone is None:
            self._watchlist.drop_session(self._batch, id)
        else:
            self._watchlist.forget_said(self._batch, id)
        self.gone += 1

    # ── one session ───────────────────────────────────────────────────────────────────────────────

    def _number(self, job: Job) -> int:
        """Which session it is; from here on it is being read."""
        before = job.before
        if before is None:
            session, self._next = self._next, self._next + 1
            self._begin(session, job)
        else:
            session = before.id
            self._batch.mark_dirty()
            self._loose |= shared_by(self._batch.db, [session])  # it may be gone from it afterwards
            if job.source is None and before.inode != job.stamp.inode:
                self._batch.flag(UNSCRUBBED)  # it was written anew: something may have been erased in it
        self._changed.add(session)
        self._learns = self._learns or (job.source is None and job.native == MARKS)
        return session

    def _take(self, job: Job) -> None:
        session = self._number(job)
        try:
            row = self._read(job, session)
        except Exception as error:
            # Whatever a reader stumbles over, its session is listed with the reason, and the others are read.
            if self._writer.has_failed:
                raise
            row = problem_row(job, reason_of(error))
        self._put(job, session, row)

    def _put(self, job: Job, session: int, row: dict[str, Any]) -> None:
        """What is known of a session that was read."""
        row["stamp"] = "" if row.get("problem") else job.told
        row.setdefault("ending", "")
        if job.source is None:
            row["is_deleted"] = job.is_deleted
            row["path"] = path_column(job.path)
        self._batch.put(session, row)
        if "title" in row:
            self._batch.do("DELETE FROM marked WHERE session = ?", (session,))
        is_sure = row.get("mark") is not None
        parts = {path: sure(stamp, is_sure) for path, stamp in job.parts.items()}
        self._watchlist.put_parts(self._batch, session, job.source.agent if job.source is not None else OURS, parts)

    def _count(self, job: Job, total: int) -> None:
        if self._progress is not None:
            self._progress("indexing", self.read_bytes, total)
        self.read += 1
        self.read_bytes += max(job.stamp.size, 0)

    def _take_apart(self, helper: Helper, jobs: list[Job], total: int) -> list[Job]:
        """Have another process read those that it can; gives the others."""
        from turnlog.catalog.read.helper import HelperEnded

        theirs, left = dict[int, Job](), list[Job]()
        for job in jobs:
            if not self._is_for_helper(job):
                left.append(job)
                continue
            session = self._number(job)
            theirs[session] = job
            if job.before is not None:
                self._batch.drop_spent(session, 0)
                self._batch.drop_used(session, 0)
        try:
            for piece in helper.read(theirs, noted(self._batch.db, KEY)) if theirs else ():
                self._batch.take_in(piece.docs, piece.spent, piece.used, piece.size)
                for session, row, problem in piece.finished:
                    job = theirs.pop(session)
                    self._count(job, total)
                    self._put(job, session, problem_row(job, problem) if problem else row | {"is_deleted": 0})
                if piece.prices is not None:
                    self._batch.prices.learn(piece.prices)
        except HelperEnded:
            self._batch.flush()
            self._writer.wait()
            for session, job in theirs.items():
                job.before = self._watchlist.session(session)  # what came of it may be a part
        return [*left, *theirs.values()]

    def _is_for_helper(self, job: Job) -> bool:
        """Whether it is another agent's, in a file, and nothing that was said in it is here."""
        if job.source is None or job.is_kept or job.stamp.size < 0:
            return False
        return job.before is None or (job.is_unread and not any(True for _ in self._batch.docs(job.before.id)))

    def _begin(self, session: int, job: Job) -> None:
        self._batch.mark_dirty()
        name, native, agent, key = handle_of(job.native), job.native, None, ""
        if job.source is not None:
            native = clean(os.path.basename(job.path).partition(".")[0])
            name, agent, key = f"{job.source.agent}:{native}", job.source.agent, job.source.key
        self._watchlist.begin(self._batch, session, name, native, agent, job.path, key)

    def _read(self, job: Job, session: int) -> dict[str, Any]:
        if job.stamp.size in _UNREADABLE:
            raise OSError(0, _UNREADABLE[job.stamp.size])
        if job.source is None:
            from turnlog.catalog.read import own  # takes longer to load than what another agent's session needs

            store = interior(self._home()).store
            return own.take(self._batch, store, job.native, session, job.stamp, job.before, path=job.path)
        if job.is_kept and self._gone is not None:
            return self._gone.read(job.source, session, job.before)
        row = foreign.take(self._batch, job.source, session, job.stamp, job.before, self._handed)
        return row | {"is_deleted": 0}
