"""A session that is to be read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from turnlog.catalog.index.columns import clean, ms_of
from turnlog.catalog.index.sqlite.watchlist import OURS, Stamp
from turnlog.catalog.watch.sweep import ABSENT, YOUNG_NS, stamp_of
from turnlog.errors import TurnlogError

if TYPE_CHECKING:
    from turnlog.catalog.index.batch import IndexedSession
    from turnlog.catalog.index.rows import SessionRow
    from turnlog.catalog.watch.sweep import GrownSession
    from turnlog.formats import Source


class Job:
    """A session to read: its location, how that looked, and what the index has."""

    def __init__(
        self,
        source: Source | None,
        native: str,
        path: str,
        stamp: Stamp,
        before: IndexedSession | None,
        *,
        is_deleted: bool = False,
        is_kept: bool = False,
        version: str = "",
        parts: dict[str, Stamp] | None = None,
    ) -> None:
        self.source = source
        self.native = native
        self.path = path
        self.stamp = stamp
        self.before = before
        self.is_deleted = is_deleted
        self.is_unread = False
        """Whether the index has only a glance at it."""
        self.version = version
        """The version of the session in its database; "" if there is none."""
        self.parts = {path: stamp} if parts is None else parts
        """The files that it is read from, and how they looked."""
        self.is_kept = is_kept
        """Whether its file is gone, and the copy that was kept is read."""

    @property
    def key(self) -> tuple[str, str, str]:
        """File, key in that file, and agent. Of a session of ours in no file, its id is the key."""
        if self.source is None:
            return self.path, "" if self.path else self.native, OURS
        return self.path, self.source.key, self.source.agent


def kept_job(source: Source, kept_path: str, before: IndexedSession | None) -> Job:
    """The job for a session whose file is gone, but was kept."""
    stamp = stamp_of(kept_path) or Stamp(ABSENT, 0, 0)
    return Job(source, "", source.path, stamp, before, is_kept=True, parts={kept_path: stamp})


def stored_job(session: GrownSession, before: IndexedSession | None, known_ends: str) -> Job:
    """The job for a session of ours in a store without files; `known_ends` are those of its log when it was read."""
    listed, ends = session.listed, session.ends
    at = listed.last.at if listed.last is not None else None
    is_same_log = known_ends.startswith(f"{listed.first} ") and known_ends.rpartition(" ")[2] == ends.rpartition(" ")[2]
    # The index has inode 0 for what is no file, so any other number means that the log was rewritten.
    inode = int(before is not None and not is_same_log)
    stamp = Stamp(listed.size_bytes, (ms_of(at) or 0) * 1_000_000, inode)
    return Job(None, listed.id, "", stamp, before, is_deleted=session.is_deleted, version=ends, parts={})


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


def stamp_to_record(stamp: Stamp, *, is_sure: bool = False) -> Stamp:
    """The stamp to record: one that differs next time if the file is so young that a change might not show."""
    if is_sure or stamp.size < 0 or time.time_ns() - stamp.mtime > YOUNG_NS:
        return stamp
    return stamp._replace(mtime=0)
