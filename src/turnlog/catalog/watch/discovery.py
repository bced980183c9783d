"""Finds sessions in folders whose entries have changed. Formats see only the new names, if that is enough."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from turnlog.catalog.index.sqlite.watchlist import OURS, Watchlist
from turnlog.catalog.watch.sweep import DANGLING, YOUNG_NS, Changes, WatchedFile, mtime_of, stamp_of
from turnlog.errors import NotFound, Unsupported
from turnlog.formats import Source, format_of
from turnlog.layout import SESSIONS, TRASH
from turnlog.log.startup import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from turnlog.catalog.index.batch import Batch

_DEEPEST = 12
_LATER_NS = 86_400_000_000_000
"""The age after which a file that is not a session is no longer checked."""
_PASSING = (".lock", ".tmp", ".bak", ".log")
_INDEX = "index.json"
"""A list of all sessions that some agents write: it changes with each session, and has nothing else."""
_NEAR = 50
DATABASES = (".db", ".sqlite", ".sqlite3")
"""How the names of files end in which an agent may keep several sessions."""


class OwnFile(NamedTuple):
    """A file with a session of ours."""

    path: str
    id: str
    is_deleted: bool


class Discovered(NamedTuple):
    """What has to be read: other agents' sessions, and ours."""

    sources: list[Source]
    ours: list[OwnFile]


def can_read(agent: str) -> bool:
    """Whether the format of an agent is available: one of another package may have been removed, or be broken."""
    try:
        return agent == OURS or bool(format_of(agent))
    except (NotFound, Unsupported):
        return False


class Finder:
    """Examines folders, and records in the batch how they looked."""

    def __init__(self, watchlist: Watchlist, batch: Batch, *, is_quick: bool = False) -> None:
        self._is_quick = is_quick
        """Whether the name of a file is enough, because a glance follows that shows whether it is a session."""
        self._watchlist = watchlist
        self._batch = batch
        self._discovered = Discovered([], [])
        self._homes_to_list: set[tuple[str, str]] = set()
        self._folders: list[tuple[str, str, str, int]] = []
        self._sessions: set[str] | None = None
        self.keys: dict[tuple[str, str], set[str]] = {}
        """The keys of the sessions in changed files, as far as those were examined."""

    def find(self, changes: Changes) -> Discovered:
        """Every new session, including new ones in changed files."""
        for agent, home in changes.homes:
            if os.path.isfile(home):
                self._examine_new_file(agent, home)
            else:
                self._examine_folder(agent, home, home)
        for folder in changes.folders:
            if not can_read(folder.agent):
                continue
            if os.path.isdir(folder.path):
                self._examine_folder(folder.agent, folder.home, folder.path)
            else:
                self._watchlist.drop_folder(self._batch, folder.id)
        for file in changes.files:
            self._examine_changed_file(file)
        for agent, home in self._homes_to_list:
            self._discovered.sources.extend(self._not_read_yet(format_of(agent).find(home)))
        return self._discovered

    def remember(self) -> None:
        """Record how the folders looked. Call it after reading their content: what is unread then is never found."""
        for row in self._folders:
            self._watchlist.put_folder(self._batch, *row)

    def parts(self, source: Source) -> list[str]:
        """The other files that a session is read from."""
        watch = format_of(source.agent).watch
        paths = watch.sidecars(source) if watch.sidecars is not None else []
        if source.path.endswith(DATABASES):
            paths = [*paths, source.path + "-wal"]
        elif not watch.by_file:
            paths = [*paths, *self._files_beside(source.path)]
        return [path for path in dict.fromkeys(paths) if path != source.path]

    def _files_beside(self, path: str) -> list[str]:
        """Files beside a session, or in it if it is a folder, unless they are sessions themselves or too many."""
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
            self._sessions = self._watchlist.foreign_paths() | {source.path for source in self._discovered.sources}
        return [other for other in paths if other not in self._sessions]

    def _examine_folder(self, agent: str, home: str, path: str, depth: int = 0) -> None:
        """Examine a new or changed folder, and the folders below it that were not examined yet."""
        try:
            status = os.stat(path)
            with os.scandir(path) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError:
            return
        is_sure = time.time_ns() - status.st_mtime_ns > YOUNG_NS
        self._folders.append((path, agent, home, mtime_of(status) if is_sure else 0))
        if agent == OURS:
            self._find_own(path, entries)
            return
        watch = format_of(agent).watch
        if not watch.by_file:
            self._homes_to_list.add((agent, home))
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if (
                    depth < _DEEPEST
                    and entry.name not in watch.apart
                    and not self._watchlist.has_folder(agent, entry.path)
                ):
                    self._examine_folder(agent, home, entry.path, depth + 1)
            elif watch.by_file and not self._watchlist.has_file(entry.path):
                self._examine_new_file(agent, entry.path)

    def _find_own(self, folder: str, entries: list[os.DirEntry[str]]) -> None:
        """Find new sessions of ours. If a session in the trash and one in use have the same id, only the latter is."""
        from turnlog.store.files.names import is_session_file, session_id_of

        is_deleted = os.path.basename(folder) == TRASH
        in_use = os.path.join(os.path.dirname(folder), SESSIONS)
        paths = {path for _, path in self._watchlist.files_of(OURS)}
        for entry in entries:
            if is_session_file(entry.name) and entry.path not in paths:
                if is_deleted and os.path.lexists(os.path.join(in_use, entry.name)):
                    continue
                native = session_id_of(entry.name) or _id_in_first_line(entry.path) or entry.name
                self._discovered.ours.append(OwnFile(entry.path, native, is_deleted))

    def _examine_new_file(self, agent: str, path: str) -> None:
        """Examine a new file."""
        stamp = stamp_of(path)
        if stamp is None:
            return
        if stamp.size == DANGLING and path.endswith(".jsonl"):
            self._discovered.sources.append(Source(agent, path))
            return
        from turnlog.catalog.glance.survey import QUICK  # not needed if sessions only grew

        if self._is_quick and agent in QUICK and stamp.size >= 0:
            sources = [Source(agent, path)] if QUICK[agent].is_session_name(os.path.basename(path)) else []
        else:
            sources = list(format_of(agent).find(path)) if stamp.size >= 0 else []
        self._discovered.sources.extend(sources)
        if all(source.path != path for source in sources):
            # The file is no session, or a list of others, which may grow.
            is_old = stamp.size < 0 or time.time_ns() - stamp.mtime > _LATER_NS
            self._watchlist.put_file(self._batch, path, agent, stamp, is_watched=bool(sources) or not is_old)

    def _examine_changed_file(self, file: WatchedFile) -> None:
        """Examine a changed file: it may have more sessions than before."""
        agent = self._watchlist.agent_of(file.id)
        path = file.path.removesuffix("-wal")
        stamp = stamp_of(path)
        if not agent or not can_read(agent) or stamp is None or stamp.size < 0:
            return
        form = format_of(agent)
        if form.watch.by_file or path.endswith(DATABASES):
            sources = list(form.find(path))
            # A database without keys may be damaged.
            if not path.endswith(DATABASES) or any(source.key for source in sources):
                self.keys[agent, path] = {source.key for source in sources}
            self._discovered.sources.extend(self._not_read_yet(sources))

    def _not_read_yet(self, sources: Iterable[Source]) -> Iterator[Source]:
        for source in sources:
            if not self._watchlist.has_source(source.agent, source.path, source.key):
                yield source


def _id_in_first_line(path: str) -> str | None:
    """The id in the first line of a file whose name is only a hash of it."""
    from turnlog.store.files.disk import Disk
    from turnlog.store.files.glimpse import glimpse

    row = glimpse(Disk(), *os.path.split(path))
    return row.id if row is not None else None
