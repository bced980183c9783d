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
"""So many files of one agent are counted; more are many in any case."""
_SHOWN, _NEAR = 120, 80
"""So many of the newest are looked at, and of those that were in this folder."""
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
    folder: str = ""
    """The name of the one it lies in."""


class FileSurvey:
    """Files below folders that are new or changed: all that are not known yet."""

    def __init__(
        self,
        roots: Iterable[tuple[str, str]],
        *,
        is_known: Callable[[str], bool] = lambda path: False,
        is_known_folder: Callable[[str, str], bool] = lambda agent, path: False,
    ) -> None:
        self._is_known = is_known
        self._is_known_folder = is_known_folder
        self.files: list[FoundFile] = []
        """Of agents that can be looked at quickly."""
        self.own: list[FoundFile] = []
        """Of ours."""
        self.size_bytes = 0
        self.others: set[tuple[str, str]] = set()
        """Agents of which only their formats can tell, and their folders."""
        for agent, root in dict.fromkeys(roots):
            if os.path.isdir(root):
                self._count(agent, root)

    def _count(self, agent: str, root: str) -> None:
        quick = QUICK.get(agent)
        found, count = self.files if quick is not None else self.own if agent == OURS else [], 0
        waiting, size = [(root, 0)], 0
        while waiting and count < _MOST:
            folder, depth = waiting.pop()
            try:
                with os.scandir(folder) as listed:
                    entries = list(listed)
            except OSError:
                continue
            below = os.path.basename(folder)
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if depth < _DEEPEST and not self._is_known_folder(agent, entry.path):
                        waiting.append((entry.path, depth + 1))
                    continue
                name = entry.name
                if (quick is not None and not quick.is_session_name(name)) or self._is_known(entry.path):
                    continue
                try:
                    status = entry.stat()
                except OSError:
                    continue
                count += 1
                size += status.st_size
                if not name.startswith(_ASIDE):
                    found.append(FoundFile(status.st_mtime_ns, agent, entry.path, status.st_size, below))
        self.size_bytes += size
        if count and quick is None and agent != OURS:
            self.others.add((agent, root))


class Glances:
    """The newest sessions of a survey, looked at; `unseen` are those for which there was no time."""

    def __init__(self, survey: FileSurvey, workspace: str) -> None:
        self._files = survey.files
        near = _nearness(workspace)
        here = {name for name in {file.folder for file in self._files} if near(name)}
        chosen = nlargest(_NEAR, (file for file in self._files if file.folder in here)) if here else []
        chosen = dict.fromkeys([*chosen, *nlargest(_SHOWN, self._files)])
        self._seen = {file.path for file in chosen}
        self.rows = [row for file in chosen if (row := row_at(file)) is not None]

    @property
    def unseen(self) -> int:
        """How many files were not looked at."""
        return len(self._files) - len(self._seen)

    @property
    def first(self) -> int | None:
        """When the oldest of them last changed."""
        return min(self._files).mtime // 1_000_000 if self.unseen else None

    def called(self, name: str) -> list[tuple[Any, ...]]:
        """Those of the others that may be called so, looked at now."""
        native = name.rpartition(":")[2]
        fits = [file for file in self._files if native and native in os.path.basename(file.path)]
        fits = [file for file in fits if file.path not in self._seen][:_FITTING]
        self._seen.update(file.path for file in fits)
        return [row for file in fits if (row := row_at(file)) is not None]


def _nearness(workspace: str) -> Callable[[str], bool]:
    """Whether sessions in a folder were in that workspace, above or below it, as Claude Code calls its folders."""
    here = re.sub(r"[^a-zA-Z0-9]", "-", workspace)
    return lambda folder: folder[:1] == "-" and len(folder) > 1 and (folder.startswith(here) or here.startswith(folder))


def row_at(file: FoundFile) -> tuple[Any, ...] | None:
    """What a glance at a file tells, as `COLUMNS`; None if it is no session."""
    try:
        found = QUICK[file.agent].glance(file.path, file.size)
    except OSError:
        return None
    return None if found is None else row_of_glance(file, found)


def row_of_glance(file: FoundFile, found: SessionGlance, key: str = "") -> tuple[Any, ...]:
    """A glance as `COLUMNS`."""
    updated = found.updated if found.updated is not None else file.mtime // 1_000_000
    native, title = clean(found.native), found.title
    return (
        f"{file.agent}:{native}", native, 0, file.agent, path_column(file.path), key,
        _workspace(found.workspace), clean(title) if title and is_title(title, found.workspace) else None,
        clean(found.preview), found.created if found.created is not None else updated, updated, found.fork,
        found.parent, found.is_hidden, 0, 1, file.size, UNREAD,
    )  # fmt: skip


_known: dict[str, str | bytes] = {}


def _workspace(folder: str | None) -> str | bytes | None:
    if not folder:
        return None
    if folder not in _known:
        is_path = folder.startswith("/") and "\0" not in folder
        _known[folder] = path_column(workspace_path(folder) if is_path else folder)
    return _known[folder]
