"""A session that is to be read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from turnlog.catalog.index.columns import clean
from turnlog.catalog.index.sqlite.watchlist import Stamp
from turnlog.catalog.watch.sweep import ABSENT, YOUNG_NS, stamp_of
from turnlog.errors import TurnlogError

if TYPE_CHECKING:
    from turnlog.catalog.index.batch import IndexedSession
    from turnlog.catalog.index.rows import SessionRow
    from turnlog.formats import Source


class Job:
    """A session to read: its location, how that looked, and what the index has."""

    def __init__(
        self, source: Source | None, native: str, path: str, stamp: Stamp, before: IndexedSession | None
    ) -> None:
        self.source = source
        self.native = native
        self.path = path
        self.stamp = stamp
        self.before = before
        self.is_deleted = False
        self.is_unread = False
        """Whether a glance was all that was taken of it."""
        self.version = ""
        """What its database says of when it changed."""
        self.parts: dict[str, Stamp] = {path: stamp}
        self.is_kept = False
        """Whether its file is gone, and is read from where it is kept."""


def kept_job(source: Source, place: str, before: IndexedSession | None) -> Job:
    """The job for a session whose file is gone, but was kept."""
    stamp = stamp_of(place) or Stamp(ABSENT, 0, 0)
    job = Job(source, "", source.path, stamp, before)
    job.is_kept, job.parts = True, {place: stamp}
    return job


def reason_of(error: Exception) -> str:
    """Why a session cannot be read."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if not isinstance(error, (OSError, TurnlogError)):
        reason = f"{type(error).__name__}: {reason}"
    return clean(f"it cannot be read: {reason}")


def problem_row(job: Job, reason: str) -> SessionRow:
    """The columns of a session that cannot be read."""
    row: SessionRow = {"problem": reason, "size": max(job.stamp.size, 0)}
    if job.before is None:
        row["updated"] = job.stamp.mtime // 1_000_000
    return row


def sure(stamp: Stamp, is_sure: bool) -> Stamp:
    """The stamp to record: one that differs next time if the file is so young that a change might not show."""
    if is_sure or stamp.size < 0 or time.time_ns() - stamp.mtime > YOUNG_NS:
        return stamp
    return stamp._replace(mtime=0)
