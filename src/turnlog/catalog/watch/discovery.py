"""Which sessions lie in folders whose names have changed. Only new names are asked about, where that is enough."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from turnlog.catalog.index.sqlite.watchlist import OURS, Watchlist
from turnlog.catalog.watch.sweep import DANGLING, YOUNG_NS, Changes, WatchedFile, stamp_of
from turnlog.errors import NotFound, Unsupported
from turnlog.formats import Source, format_of
from turnlog.layout import TRASH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from turnlog.catalog.index.batch import Batch

_DEEPEST = 12
_MOST = 20_000
_LATER_NS = 86_400_000_000_000
"""The age after which a file that is not a session is no longer checked."""
_PASSING = (".lock", ".tmp", ".bak", ".log")
_INDEX = "index.json"
"""What some agents keep of all their sessions together: it changes with each of them, and says nothing more."""
_NEAR = 50
_DATABASES = (".db", ".sqlite", ".sqlite3")


class Discovered(NamedTuple):
    """What has to be read: sessions of other agents; and ours: file, id, and whether they are deleted."""

    sources: list[Source]
    ours: list[tuple[str, str, bool]]


def can_read(agent: str) -> bool:
    """Whether its format is here: one of another package may have been in use, and be gone or broken."""
    try:
        return agent == OURS or bool(format_of(agent))
    except (NotFound, Unsupported):
        return False


class Finder:
    """Looks into folders, and remembers in the batch how they looked."""

    def __init__(self, watchlist: Watchlist, batch: Batch, *, is_quick: bool = False) -> None:
        self._is_quick = is_quick
        """Whether a file counts by its name where a glance will tell whether it is a session."""
        self._watchlist = watchlist
        self._batch = batch
        self._found = Discovered([], [])
        self._whole: set[tuple[str, str]] = set()
        self._folders: list[tuple[str, str, str, int]] = []
        self._sessions: set[str] | None = None
        self.keys: dict[tuple[str, str], set[str]] = {}
        """Which sessions are in files that changed, as far as they were looked through."""

    def look(self, changes: Changes) -> Discovered:
        """Every session that is new, and every source that a file which changed may have besides the known ones."""
        for agent, home in changes.homes:
            if os.path.isfile(home):
                self._new(agent, home)
            else:
                self._folder(agent, home, home)
        for number, agent, home, path in changes.folders:
            if not can_read(agent):
                continue
            if os.path.isdir(path):
                self._folder(agent, home, path)
            else:
                self._watchlist.drop_folder(self._batch, number)
        for file in changes.files:
            self._file(file)
        for agent, home in self._whole:
            self._found.sources.extend(self._unknown(format_of(agent).find(home)))
        return self._found

    def remember(self) -> None:
        """How the folders looked. Not before all is read that is in them, or what was not would never be found."""
        for row in self._folders:
            self._watchlist.put_folder(self._batch, *row)

    def parts(self, source: Source) -> list[str]:
        """Further files that a session is read from."""
        form = format_of(source.agent)
        if form.watch.sidecars is not None:
            paths = form.watch.sidecars(source)
        elif source.path.endswith(_DATABASES):
            paths = [source.path + "-wal"]
        else:
            paths = [] if form.watch.by_file else self._near(source.path)
        return [path for path in paths if path != source.path]

    def _near(self, path: str) -> list[str]:
        """Files beside a session, or in the folder that it is, unless they are sessions themselves, or many."""
        is_folder = os.path.isdir(path)
        try:
            with os.scandir(path if is_folder else os.path.dirname(path)) as listed:
                files = [entry for entry in listed if entry.is_file() and not entry.name.endswith(_PASSING)]
        except OSError:
            return []
        stem = os.path.basename(path).partition(".")[0]
        if not is_folder and len(files) > _NEAR:
            files = [entry for entry in files if entry.name.startswith(stem)]
        paths = [entry.path for entry in files if entry.name != _INDEX]
        if is_folder:
            return paths
        if self._sessions is None:
            self._sessions = self._watchlist.foreign_paths() | {source.path for source in self._found.sources}
        return [other for other in paths if other not in self._sessions]

    def _folder(self, agent: str, home: str, path: str, depth: int = 0) -> None:
        """A folder whose names are new or others, and the folders below it that nobody has looked at."""
        try:
            status = os.stat(path)
            with os.scandir(path) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError:
            return
        is_sure = time.time_ns() - status.st_mtime_ns > YOUNG_NS
        self._folders.append((path, agent, home, status.st_mtime_ns if is_sure else 0))
        if agent == OURS:
            self._ours(path, entries)
            return
        watch, watchlist = format_of(agent).watch, self._watchlist
        if not watch.by_file:
            self._whole.add((agent, home))
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if (
                    depth < _DEEPEST
                    and entry.name not in watch.apart
                    and not self._watchlist.has_folder(agent, entry.path)
                ):
                    self._folder(agent, home, entry.path, depth + 1)
            elif watch.by_file and not watchlist.has_file(entry.path):
                self._new(agent, entry.path)

    def _ours(self, folder: str, entries: list[os.DirEntry[str]]) -> None:
        from turnlog.store.files.names import is_session_file, session_id_of

        is_deleted = os.path.basename(folder) == TRASH
        paths = {path for _, path in self._watchlist.files_of(OURS)}
        for entry in entries:
            if is_session_file(entry.name) and entry.path not in paths:
                native = session_id_of(entry.name) or _told_id(entry.path) or entry.name
                self._found.ours.append((entry.path, native, is_deleted))

    def _new(self, agent: str, path: str) -> None:
        """A file that nobody has looked at."""
        stamp = stamp_of(path)
        if stamp is None:
            return
        if stamp.size == DANGLING and path.endswith(".jsonl"):
            self._found.sources.append(Source(agent, path))
            return
        from turnlog.catalog.glance.survey import QUICK  # what only grew needs none

        if self._is_quick and agent in QUICK and stamp.size >= 0:
            sources = [Source(agent, path)] if QUICK[agent].is_session_name(os.path.basename(path)) else []
        else:
            sources = list(format_of(agent).find(path)) if stamp.size >= 0 else []
        self._found.sources.extend(sources)
        if all(source.path != path for source in sources):  # it is none, or a list of others, which may grow
            is_old = stamp.size < 0 or time.time_ns() - stamp.mtime > _LATER_NS
            self._watchlist.put_file(self._batch, path, agent, stamp, is_watched=bool(sources) or not is_old)

    def _file(self, file: WatchedFile) -> None:
        """A file that changed: there may be more sessions in it than before."""
        agent = self._watchlist.agent_of(file.id)
        path = file.path.removesuffix("-wal")
        stamp = stamp_of(path)
        if not agent or not can_read(agent) or stamp is None or stamp.size < 0:
            return
        form = format_of(agent)
        if form.watch.by_file or path.endswith(_DATABASES):
            sources = list(form.find(path))
            if not path.endswith(_DATABASES) or any(source.key for source in sources):  # a damaged one says nothing
                self.keys[agent, path] = {source.key for source in sources}
            self._found.sources.extend(self._unknown(sources))

    def _unknown(self, sources: Iterable[Source]) -> Iterator[Source]:
        for source in sources:
            if not self._watchlist.has_source(source.agent, source.path, source.key):
                yield source


def _told_id(path: str) -> str | None:
    """The id in the first line, where the name is only a digest of it."""
    from turnlog.store.files.disk import Disk
    from turnlog.store.files.glimpse import glimpse

    row = glimpse(Disk(), *os.path.split(path))
    return row.id if row is not None else None
