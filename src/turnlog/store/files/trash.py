"""Deleting, restoring and purging in the file store: a log gets its new name before it loses the old one."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import Corrupt
from turnlog.layout import BASES, SESSIONS, TRASH
from turnlog.log.entry import Start
from turnlog.store import Clock, Listed
from turnlog.store.files.blobs import FileBlobs
from turnlog.store.files.disk import Held, disk_errors, open_locked
from turnlog.store.files.glimpse import first_id, glimpse
from turnlog.store.files.homefolder import HomeFolder
from turnlog.store.files.listing import rows_in
from turnlog.store.refusal import id_ambiguous, id_in_trash, id_taken, refuse_other_end, session_missing


class _Needed(Struct, frozen=True):
    """The part of a session that its forks need."""

    first: str
    """The id of the session's first entry, as the forks record it."""
    seq: int = 0
    """The last entry that forks need; 0 if there are no forks."""
    is_unknown: bool = False
    """Whether some session cannot be read, which may be a fork of this one."""


class Trash:
    """The deleted sessions of a home. The part of a purged session that forks need is kept aside."""

    def __init__(self, home: HomeFolder, blobs: FileBlobs, clock: Clock) -> None:
        self._home = home
        self._disk = home.disk
        self._blobs = blobs
        self._clock = clock

    def move(self, session_id: str, old: str, new: str, *, after: int | None = None) -> None:
        """Rename a log by a link and an unlink, so that an existing file is never replaced."""
        with disk_errors(f"moving session {session_id} to {os.path.dirname(new)}"):
            if not self._disk.exists(old):
                raise session_missing(session_id)
            # A collection that looks through all sessions must not miss this one.
            with self._blobs.keeping(), self._locked(session_id, old) as held:
                self._refuse_other_end(session_id, old, after)
                try:
                    self._disk.link(old, new)
                except FileExistsError:
                    if not self._home.is_still(held.fileno(), new):  # a crash came between link and unlink
                        raise (id_in_trash if os.path.dirname(new).endswith(TRASH) else id_taken)(session_id) from None
                self._disk.sync_folder(os.path.dirname(new))
                self._disk.unlink(old)
            self._disk.sync_folder(os.path.dirname(old))

    def _locked(self, session_id: str, path: str) -> Held:
        held = open_locked(self._disk, path)
        if held is None:
            raise session_missing(session_id)
        return held

    def _refuse_other_end(self, session_id: str, path: str, after: int | None) -> None:
        if after is not None:
            row = glimpse(self._disk, *os.path.split(path))
            last = row.last if row is not None else None
            refuse_other_end(session_id, last.seq if last is not None else 0, after)

    def delete(self, session_id: str, *, after: int | None = None) -> None:
        live, trash = (self._home.path(subfolder, session_id) for subfolder in (SESSIONS, TRASH))
        self.move(session_id, live, trash, after=after)

    def restore(self, session_id: str) -> None:
        self.move(session_id, self._home.path(TRASH, session_id), self._home.path(SESSIONS, session_id))

    def purge(self, session_id: str, *, deleted: bool | None = None, after: int | None = None) -> None:
        """See `Logs.purge`. The part that forks need is on the disk in `bases/` before the old file is removed."""
        with disk_errors(f"purging session {session_id}"):
            named = {False: self._home.path(SESSIONS, session_id), True: self._home.path(TRASH, session_id)}
            paths = [
                path for is_deleted, path in named.items() if deleted in (None, is_deleted) and self._disk.exists(path)
            ]
            if not paths:
                raise session_missing(session_id)
            if len(paths) > 1 and not os.path.samestat(*map(self._disk.stat, paths)):
                raise id_ambiguous(session_id)
            with self._blobs.exclusive():
                for path in paths:
                    self._purge(session_id, path, after)
                self._drop_unneeded_bases()

    def _purge(self, session_id: str, path: str, after: int | None) -> None:
        with self._locked(session_id, path):
            self._refuse_other_end(session_id, path, after)
            needed = self._needed(session_id, first_id(self._disk, path))
            if needed.is_unknown:
                raise Corrupt(
                    f"a session cannot be read, and may build on {session_id!r}",
                    hint="see which with `turnlog doctor`, and repair or purge that one first",
                )
            if needed.seq:
                from turnlog.store.files.sessionfile import SessionFile

                log = SessionFile(self._disk, path, session_id, clock=self._clock, read_only=True)
                try:
                    self._home.write_pieces(self._home.path(BASES, needed.first), log.prefix(needed.seq))
                finally:
                    log.close()
            self._disk.unlink(path)
            self._disk.sync_folder(os.path.dirname(path))

    def _needed(self, session_id: str, first: str | None) -> _Needed:
        needed = _Needed(first or session_id)
        for row in self._all_rows():
            if first in (None, row.first) and row.id == session_id:
                continue
            if row.start is None:
                return replace(needed, is_unknown=True)
            fork = row.start.fork
            if fork is not None and (fork.base == first if first else fork.session == session_id):
                needed = _Needed(fork.base, fork.seq) if fork.seq > needed.seq else needed
        return needed

    def _all_rows(self) -> Iterator[Listed]:
        for subfolder in (SESSIONS, TRASH, BASES):
            yield from rows_in(self._home, subfolder)

    def _drop_unneeded_bases(self) -> None:
        """Remove what was kept aside for forks that are gone, and then what was kept for that."""
        bases: dict[str, tuple[str, Start]] = {}
        for name in self._home.names(BASES):
            row = glimpse(self._disk, os.path.join(self._home.folder, BASES), name)
            if row is not None and row.start is not None:
                bases[row.first] = name, row.start
        if not bases:
            return
        forks: Counter[str] = Counter()
        """The number of forks of each log."""
        for row in self._all_rows():
            if row.start is None:
                return  # it may be a fork of any of them
            if row.start.fork is not None:
                forks[row.start.fork.base] += 1
        waiting = [first for first in bases if not forks[first]]
        for first in waiting:  # grows during the iteration
            name, start = bases[first]
            self._disk.unlink(os.path.join(self._home.folder, BASES, name))
            if start.fork is not None:
                forks[start.fork.base] -= 1
                if not forks[start.fork.base] and start.fork.base in bases:
                    waiting.append(start.fork.base)
