"""A session that is to be read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.sqlite.watchlist import Stamp
from turnlog.catalog.index.texts import clean
from turnlog.catalog.watch.sweep import ABSENT, YOUNG_NS, stamp_of
from turnlog.errors import TurnlogError

if TYPE_CHECKING:
    from turnlog.catalog.index.batch import Before
    from turnlog.formats import Source


class Job:
    """Where it lies, how that looked, and what is known of it."""

    def __init__(self, source: Source | None, native: str, path: str, stamp: Stamp, before: Before | None) -> None:
        self.source = source
        self.native = native
        self.path = path
        self.stamp = stamp
        self.before = before
        self.is_deleted = False
        self.is_unread = False
        """Whether a glance was all that was taken of it."""
        self.told = ""
        """What its database says of when it changed."""
        self.parts: dict[str, Stamp] = {path: stamp}
        self.is_kept = False
        """Whether its file is gone, and is read from where it is kept."""


def kept_job(source: Source, place: str, before: Before | None) -> Job:
    """One whose file is gone, and that is kept at a place."""
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


def problem_row(job: Job, reason: str) -> dict[str, Any]:
    """The columns of a session that cannot be read."""
    row: dict[str, Any] = {"problem": reason, "size": max(job.stamp.size, 0)}
    if job.before is None:
        row["updated"] = job.stamp.mtime // 1_000_000
    return row


def sure(stamp: Stamp, is_sure: bool) -> Stamp:
    """A stamp that differs next time if the file is so young that it may change without looking different."""
    if is_sure or stamp.size < 0 or time.time_ns() - stamp.mtime > YOUNG_NS:
        return stamp
    return stamp._replace(mtime=0)
