"""Sessions that are not indexed yet: their number, their size, and a glance at the newest."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from heapq import nlargest
from stat import S_ISREG

from turnlog.catalog.glance import claude_code, codex, gemini_cli
from turnlog.catalog.glance.ends import SessionGlance, stem_of
from turnlog.catalog.index.columns import clean, path_column, workspace_column
from turnlog.catalog.index.ending import UNREAD
from turnlog.catalog.index.lookup import bounded
from turnlog.catalog.index.rows import GlanceRow
from turnlog.catalog.index.sqlite.watchlist import OURS
from turnlog.log.prompt import is_title
from turnlog.log.startup import NamedTuple

QUICK = {"claude-code": claude_code, "codex": codex, "gemini-cli": gemini_cli}
_DEEPEST = 12
_MOST = 50_000
"""The maximum number of files counted per agent."""
_SHOWN, _NEAR = 120, 80
"""How many of the newest sessions are examined: of all, and of this folder."""
_FITTING = 100
_workspace_column = lru_cache(maxsize=1024)(workspace_column)
_ASIDE = "agent-"
"""The beginning of the names of subagents' files, which no listing shows."""


class FoundFile(NamedTuple):
    """A file that was not read yet."""

    mtime: int
    agent: str
    path: str
    size: int


FileStat = tuple[int, str, str, str, int]
"""One of tens of thousands of files, most of which become no `FoundFile`: mtime, agent, folder, name and size."""


def found_file(file: FileStat) -> FoundFile:
    """A file as a `FoundFile`."""
    mtime, agent, folder, name, size = file
    return FoundFile(mtime, agent, os.path.join(folder, name), size)


class FileSurvey:
    """The files below some folders that are not known yet."""

    def __init__(
        self,
        roots: Iterable[tuple[str, str]],
        *,
        is_known: Callable[[str], bool] | None = None,
        is_known_folder: Callable[[str, str], bool] = lambda agent, path: False,
    ) -> None:
        self._is_known = is_known
        self._is_known_folder = is_known_folder
        self.files: list[FileStat] = []
        """Files of agents with a quick glance."""
        self.own: list[FileStat] = []
        """Files of our own sessions."""
        self.size_bytes = 0
        self.others: set[tuple[str, str]] = set()
        """Agents without a quick glance, and their folders."""
        for agent, root in dict.fromkeys(roots):
            if os.path.isdir(root):
                self._count(agent, root)
            elif agent not in QUICK and agent != OURS:
                self._count_file(agent, root)

    def _count(self, agent: str, root: str) -> None:
        quick = QUICK.get(agent)
        files_here: list[FileStat] = []
        waiting = [(root, 0)]
        while waiting and len(files_here) < _MOST:
            folder, depth = waiting.pop()
            below = self._listed(agent, folder, files_here)
            if depth < _DEEPEST:
                paths = (os.path.join(folder, name) for name in below)
                waiting += [(path, depth + 1) for path in paths if not self._is_known_folder(agent, path)]
        self.size_bytes += sum(size for *_, size in files_here)
        if quick is not None:
            self.files += [file for file in files_here if not file[3].startswith(_ASIDE)]
        elif agent == OURS:
            self.own += files_here
        elif files_here:
            self.others.add((agent, root))

    def _count_file(self, agent: str, path: str) -> None:
        """Count a file in which an agent keeps all of its sessions."""
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return
        if S_ISREG(status.st_mode) and not (self._is_known and self._is_known(path)):
            self.size_bytes += status.st_size
            self.others.add((agent, path))

    def _listed(self, agent: str, folder: str, files_here: list[FileStat]) -> list[str]:
        """Add the new files of a folder to `files_here`. Returns the names of the folders in it."""
        is_session = QUICK[agent].is_session_name if agent in QUICK else None
        is_known = self._is_known
        below: list[str] = []
        try:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return below
        try:
            for entry in os.scandir(fd):  # a call relative to an open folder costs a fifth less than with a full path
                name = entry.name
                if entry.is_dir(follow_symlinks=False):
                    below.append(name)
                    continue
                if (is_session and not is_session(name)) or (is_known and is_known(os.path.join(folder, name))):
                    continue
                try:
                    status = entry.stat()
                except OSError:
                    continue
                if S_ISREG(status.st_mode):  # a pipe would be waited for
                    files_here.append((status.st_mtime_ns, agent, folder, name, status.st_size))
        except OSError:
            return below
        finally:
            os.close(fd)
        return below


class Glances:
    """Glances at the newest files of a survey; `unseen` is the number of the others."""

    def __init__(self, survey: FileSurvey, workspace: str) -> None:
        self._files = survey.files
        near = _nearness(workspace)
        here = {folder for folder in {folder for _, _, folder, _, _ in self._files} if near(os.path.basename(folder))}
        chosen = nlargest(_NEAR, (file for file in self._files if file[2] in here)) if here else []
        self._examined = {*chosen, *nlargest(_SHOWN, self._files)}
        self.rows = _rows(self._examined)

    @property
    def unseen(self) -> int:
        """The number of files that were not examined."""
        return len(self._files) - len(self._examined)

    @property
    def first(self) -> int | None:
        """When the oldest file last changed, examined or not, in milliseconds; None if all were examined."""
        return min(self._files)[0] // 1_000_000 if self.unseen else None

    def look_up(self, name: str) -> list[GlanceRow]:
        """Glances at other files whose sessions may have this name."""
        native = name.rpartition(":")[2]
        fits = [file for file in self._files if native and native in file[3] and file not in self._examined][:_FITTING]
        self._examined.update(fits)
        return _rows(fits)


def _rows(files: Iterable[FileStat]) -> list[GlanceRow]:
    return [row for file in files if (row := row_at(found_file(file))) is not None]


def _nearness(workspace: str) -> Callable[[str], bool]:
    """A test whether a folder of Claude Code belongs to this workspace or one above or below it, by its name."""
    here = re.sub(r"[^a-zA-Z0-9]", "-", workspace)
    return lambda folder: folder[:1] == "-" and len(folder) > 1 and (folder.startswith(here) or here.startswith(folder))


def row_at(file: FoundFile) -> GlanceRow | None:
    """A glance at a file; None if it is gone or no session. If it fails, only the name is known."""
    try:
        session = QUICK[file.agent].glance(file.path, file.size)
    except FileNotFoundError:
        return None
    except Exception:  # no file may keep others from the list; indexing reports the reason
        session = SessionGlance(stem_of(file.path))
    return None if session is None else row_of_glance(file, session)


def row_of_glance(file: FoundFile, session: SessionGlance, key: str = "") -> GlanceRow:
    """What a glance showed, as a row of the index."""
    updated = session.updated_ms if session.updated_ms is not None else bounded(file.mtime // 1_000_000)
    native, title = clean(session.native), session.title
    return GlanceRow(
        name=f"{file.agent}:{native}",
        native=native,
        is_ours=False,
        agent=file.agent,
        path=path_column(file.path),
        key=key,
        workspace=_workspace_column(session.workspace),
        title=clean(title) if title and is_title(title, session.workspace) else None,
        preview=clean(session.preview),
        created=session.created_ms if session.created_ms is not None else updated,
        updated=updated,
        fork=session.fork and clean(session.fork),
        parent=session.parent and clean(session.parent),
        is_hidden=session.is_hidden,
        is_deleted=False,
        is_conversation=True,
        size=file.size,
        ending=UNREAD,
    )
