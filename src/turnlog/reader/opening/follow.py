"""A session while it goes on: what is appended to ours, and what another agent writes into its file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from turnlog.log.entry import AnyEntry, Note
from turnlog.reader.opening.opener import OpenedSession
from turnlog.session.interior import interior
from turnlog.thread.reader import SessionReader, history_of, refuse_purged

_PAUSE_S = 0.25
_FILES = 2000
FileStamps = list[tuple[int, int, int]]


def follow(
    opened: OpenedSession, last: int, seconds: float | None, warn: Callable[[str], None] = lambda text: None
) -> Iterator[AnyEntry]:
    """What comes after entry `last`, as soon as it is there. `seconds` is how long to wait; None waits for ever."""
    end = None if seconds is None else time.monotonic() + seconds
    last_stamps: FileStamps | None = None  # it may have grown since it was read: so it is read once more
    while True:
        left = _PAUSE_S if end is None else min(_PAUSE_S, end - time.monotonic())
        if opened.source is None:
            new = _news(opened.session, last, seconds=left)
        else:
            if left > 0:
                time.sleep(left)
            stamps = stamp_of(opened.source.path)
            if stamps != last_stamps:
                last_stamps = stamps
                _read_again(opened, warn)
            new = _news(opened.session, last, seconds=0)
        for entry in new:
            last = entry.seq
            if not _is_about_reading(opened, entry):
                yield entry
        if end is not None and time.monotonic() >= end:
            return


def _news(session: SessionReader, last: int, *, seconds: float) -> list[AnyEntry]:
    """What was appended after entry `last`, by any writer; waits for it at most this many seconds."""
    log = history_of(session).log
    has_grown = log.wait(last) or (seconds > 0 and log.wait(last, seconds=seconds))
    if not has_grown:
        refuse_purged(session)
    return list(session.entries(after=last)) if has_grown else []


def _is_about_reading(opened: OpenedSession, entry: AnyEntry) -> bool:
    """Whether it is the importer's note on lines that could not be read: perhaps one is not written to its end yet."""
    if opened.source is None or not isinstance(entry, Note) or not isinstance(entry.data, list):
        return False
    return entry.text.startswith(opened.source.path)


def stamp_of(place: str) -> FileStamps:
    """What changes when another agent has written: of its file, of a database's journal, of the files in a folder."""
    path = Path(place)
    files = sorted(path.rglob("*"))[:_FILES] if path.is_dir() else [path, Path(f"{path}-wal")]
    stamps: FileStamps = []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue  # gone, or not there yet
        stamps.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return stamps


def _read_again(opened: OpenedSession, warn: Callable[[str], None]) -> None:
    """Bring what we have of another agent's session up to date; what it has already stays."""
    from turnlog.exchange.importing.run import import_all

    assert opened.source is not None
    for brought in import_all(interior(opened.home).creator, [opened.source]):
        if not brought.id:
            warn(f"{brought.source.path}: {brought.problems[-1].what}")
    opened.session.refresh()
