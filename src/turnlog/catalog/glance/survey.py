"""Which sessions there are that nobody has read, how large they are, and what a glance at the newest of them tells."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from heapq import nlargest
from typing import Any, NamedTuple

from turnlog.catalog.glance import claude_code, codex, gemini_cli
from turnlog.catalog.glance.ends import SessionGlance
from turnlog.catalog.index.cards import UNREAD
from turnlog.catalog.index.sqlite.watchlist import OURS
from turnlog.catalog.index.texts import clean, path_column
from turnlog.log.prompt import is_title
from turnlog.machine.folder import workspace_path

QUICK = {"claude-code": claude_code, "codex": codex, "gemini-cli": gemini_cli}
_DEEPEST = 12
_MOST = 50_000
"""The maximum number of files counted per agent."""
_SHOWN, _NEAR = 120, 80
"""How many of the newest sessions are examined: of all, and of this folder."""
_FITTING = 100
_ASIDE = "agent-"
"""So the files of subagents are called, which no list shows."""
COLUMNS = (
    "name", "native", "is_ours", "agent", "path", "key", "workspace", "title", "preview", "created", "updated", "fork",
    "parent", "is_hidden", "is_deleted", "is_conversation", "size",
    "ending",
)  # fmt: skip
"""What a glance tells, as columns of a session."""


class FoundFile(NamedTuple):
    """A file that nobody has read."""

    mtime: int
    agent: str
    path: str
    size: int


Sighting = tuple[int, str, str, str, int]
"""The same while it is one of tens of thousands: when it changed, its agent, its folder, its name and its size."""


def found_file(seen: Sighting) -> FoundFile:
    """A file that was sighted."""
    mtime, agent, folder, name, size = seen
    return FoundFile(mtime, agent, os.path.join(folder, name), size)


class FileSurvey:
    """Files below folders that are new or changed: all that are not known yet."""

    def __init__(
        self,
        roots: Iterable[tuple[str, str]],
        *,
        is_known: Callable[[str], bool] | None = None,
        is_known_folder: Callable[[str, str], bool] = lambda agent, path: False,
    ) -> None:
        self._is_known = is_known
        self._is_known_folder = is_known_folder
        self.files: list[Sighting] = []
        """Of agents that can be looked at quickly."""
        self.own: list[Sighting] = []
        """Of ours."""
        self.size_bytes = 0
        self.others: set[tuple[str, str]] = set()
        """Agents of which only their formats can tell, and their folders."""
        for agent, root in dict.fromkeys(roots):
            if os.path.isdir(root):
                self._count(agent, root)

    def _count(self, agent: str, root: str) -> None:
        quick = QUICK.get(agent)
        sightings: list[Sighting] = []
        waiting = [(root, 0)]
        while waiting and len(sightings) < _MOST:
            folder, depth = waiting.pop()
            below = self._listed(agent, folder, sightings)
            if depth < _DEEPEST:
                paths = (os.path.join(folder, name) for name in below)
                waiting += [(path, depth + 1) for path in paths if not self._is_known_folder(agent, path)]
        self.size_bytes += sum(seen[4] for seen in sightings)
        if quick is not None:
            self.files += [seen for seen in sightings if not seen[3].startswith(_ASIDE)]
        elif agent == OURS:
            self.own += sightings
        elif sightings:
            self.others.add((agent, root))

    def _listed(self, agent: str, folder: str, sightings: list[Sighting]) -> list[str]:
        """The new files of a folder are found; gives the names of the folders in it."""
        is_session = QUICK[agent].is_session_name if agent in QUICK else None
        is_known = self._is_known
        below: list[str] = []
        try:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return below
        try:
            for entry in os.scandir(fd):  # what is asked below an open folder costs a fifth less than by a whole path
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
                sightings.append((status.st_mtime_ns, agent, folder, name, status.st_size))
        except OSError:
            return below
        finally:
            os.close(fd)
        return below


class Glances:
    """The newest sessions of a survey, looked at; `unseen` are those for which there was no time."""

    def __init__(self, survey: FileSurvey, workspace: str) -> None:
        self._files = survey.files
        near = _nearness(workspace)
        here = {folder for folder in {seen[2] for seen in self._files} if near(os.path.basename(folder))}
        chosen = nlargest(_NEAR, (seen for seen in self._files if seen[2] in here)) if here else []
        self._seen = {*chosen, *nlargest(_SHOWN, self._files)}
        self.rows = _rows(self._seen)

    @property
    def unseen(self) -> int:
        """How many files were not looked at."""
        return len(self._files) - len(self._seen)

    @property
    def first(self) -> int | None:
        """When the oldest of them last changed."""
        return min(self._files)[0] // 1_000_000 if self.unseen else None

    def called(self, name: str) -> list[tuple[Any, ...]]:
        """Those of the others that may be called so, looked at now."""
        native = name.rpartition(":")[2]
        fits = [seen for seen in self._files if native and native in seen[3] and seen not in self._seen][:_FITTING]
        self._seen.update(fits)
        return _rows(fits)


def _rows(files: Iterable[Sighting]) -> list[tuple[Any, ...]]:
    return [row for seen in files if (row := row_at(found_file(seen))) is not None]


def _nearness(workspace: str) -> Callable[[str], bool]:
    """Whether sessions in a folder were in that workspace, above or below it, as Claude Code calls its folders."""
    here = re.sub(r"[^a-zA-Z0-9]", "-", workspace)
    return lambda folder: folder[:1] == "-" and len(folder) > 1 and (folder.startswith(here) or here.startswith(folder))


def row_at(file: FoundFile) -> tuple[Any, ...] | None:
    """What a glance at a file tells, as `COLUMNS`; None if it is no session."""
    try:
        session = QUICK[file.agent].glance(file.path, file.size)
    except OSError:
        return None
    return None if session is None else row_of_glance(file, session)


def row_of_glance(file: FoundFile, session: SessionGlance, key: str = "") -> tuple[Any, ...]:
    """A glance as `COLUMNS`."""
    updated = session.updated if session.updated is not None else file.mtime // 1_000_000
    native, title = clean(session.native), session.title
    return (
        f"{file.agent}:{native}", native, 0, file.agent, path_column(file.path), key,
        _workspace(session.workspace), clean(title) if title and is_title(title, session.workspace) else None,
        clean(session.preview), session.created if session.created is not None else updated, updated, session.fork,
        session.parent, session.is_hidden, 0, 1, file.size, UNREAD,
    )  # fmt: skip


_known: dict[str, str | bytes] = {}


def _workspace(folder: str | None) -> str | bytes | None:
    if not folder:
        return None
    if folder not in _known:
        is_path = folder.startswith("/") and "\0" not in folder
        _known[folder] = path_column(workspace_path(folder) if is_path else folder)
    return _known[folder]
