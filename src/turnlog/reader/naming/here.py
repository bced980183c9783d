"""Which folder is "here": the repository that the current folder is in, or else the folder itself; and its sessions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Generic, TypeVar

from turnlog.errors import NotFound
from turnlog.log.startup import NamedTuple
from turnlog.machine.environment import user_folder
from turnlog.machine.folder import current_folder, is_here, workspace_path
from turnlog.machine.workspacetop import RepositoryTop, has_git, refuses_checkpoints, top_of

if TYPE_CHECKING:
    from turnlog.catalog import Card, Catalog, ListingRow
    from turnlog.session import Home

_T = TypeVar("_T")
_MOST_SESSIONS = 50
"""The maximum number of sessions that are searched for checkpoints."""
_MOST_ENTRIES = 5_000
"""The maximum number of entries of one session that are searched for checkpoints."""


class ProjectFolder(NamedTuple):
    """The folder where a new session starts, and the reason if it is not the whole repository."""

    path: str
    why_not_all: str = ""


class SessionsHere(NamedTuple, Generic[_T]):
    """Sessions of this project or of the nearest folder above it, and that folder."""

    rows: list[_T]
    folder: str


def project() -> str:
    """The folder where a new session starts: the top of the repository, or the current folder."""
    return workspace_path(_top().folder)


def project_folder() -> ProjectFolder:
    """The same folder, and the reason if it is not the whole repository."""
    top = _top()
    why = f"only {top.folder} is covered, not the repository {top.refusal}" if top.refusal else ""
    return ProjectFolder(workspace_path(top.folder), why)


def in_repository() -> bool:
    """Whether here is a repository, and not only a folder."""
    return has_git(_top().folder)


def levels() -> Iterator[list[str]]:
    """Groups of folders, nearest first. Use the first group that has sessions.

    In a repository, the folders from this one to its top are one group, and the only one. Elsewhere every folder is a
    group of its own, up to the first that is no project, such as the home folder.
    """
    folder, top = os.path.realpath(current_folder()), _top().folder
    if has_git(top):
        level = [workspace_path(folder)]
        while folder != top:
            folder = os.path.dirname(folder)
            level.append(workspace_path(folder))
        yield level
        return
    yield [workspace_path(folder)]
    while folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        if refuses_checkpoints(folder):
            return
        yield [workspace_path(folder)]


def _top() -> RepositoryTop:
    # The repository of a folder that is gone is unknown.
    return top_of(current_folder()) if is_here() else RepositoryTop(os.path.realpath(current_folder()))


def is_in(path: str, folder: str) -> bool:
    """Whether a path is that folder, or below it."""
    return (path.rstrip("/") + "/").startswith(folder.rstrip("/") + "/")


def tilde(path: str) -> str:
    """A path as people write it."""
    home = user_folder()
    return "~" + path[len(home) :] if home != "/" and is_in(path, home) else path


# ── sessions of ours ──────────────────────────────────────────────────────────────────────────────


def sessions_here(home: Home, *, agent: str | None = None) -> list[str]:
    """The ids of the sessions of here, the newest first; of that agent only, if given."""
    by_folder = _by_folder(home, agent)
    for level in levels():
        ids = {id for folder in level for id in by_folder.get(folder, [])}
        if ids:
            return [row.id for row in home.sessions() if row.id in ids]
    return []


def newest_here(home: Home, *, agent: str | None = None) -> str | None:
    """The newest session of here; of that agent only, if given."""
    return next(iter(sessions_here(home, agent=agent)), None)


def newest_with_files(home: Home) -> str | None:
    """The newest session of here that has checkpoints; where none has, the newest."""
    ids = sessions_here(home)
    return next((id for id in ids[:_MOST_SESSIONS] if _has_checkpoint(home, id)), next(iter(ids), None))


def _has_checkpoint(home: Home, id: str) -> bool:
    """Looks at most `_MOST_ENTRIES` entries back: an imported session may be long, and has none."""
    from turnlog.log.entry import Checkpoint
    from turnlog.session.interior import interior
    from turnlog.thread.history import opened

    try:
        with opened(interior(home).store, interior(home).store.open(id, read_only=True)) as history:
            return any(isinstance(entry, Checkpoint) for entry in islice(history.back(), _MOST_ENTRIES))
    except NotFound:
        return False  # it was removed meanwhile


def newest_conversation(home: Home) -> str | None:
    """The newest conversation of here; where there is none, the newest session."""
    from turnlog.session.interior import interior
    from turnlog.session.lookup import is_net_in

    rows = {row.id: row for row in home.sessions()}
    here = [id for level in levels() for id in rows if rows[id].workspace in level]
    ids = (id for id in here if not rows[id].hidden and rows[id].parent is None)
    talks = (id for id in ids if not is_net_in(interior(home).store, rows[id]))
    return next(talks, None) or newest_here(home)


def newest_at(home: Home, folder: str, *, agent: str | None = None) -> str | None:
    """The newest session of exactly that folder; of that agent only, if given."""
    return next(iter(_by_folder(home, agent).get(folder, [])), None)


def _by_folder(home: Home, agent: str | None) -> dict[str, list[str]]:
    folders: dict[str, list[str]] = {}
    for row in home.sessions():
        if row.workspace and not row.hidden and row.parent is None and agent in (None, row.agent):
            folders.setdefault(row.workspace, []).append(row.id)
    return folders


# ── what the catalog knows of here ────────────────────────────────────────────────────────────────


def in_folder(query: str, folder: str) -> str:
    """The query, for sessions of that folder and of those below it."""
    if "OR" in query:
        from turnlog.catalog.ask.query import Filter, parse

        return str(parse(query).within(Filter("workspace", (folder,))))
    escaped = folder.replace("\\", "\\\\").replace('"', '\\"')
    return f'{query} workspace:"{escaped}"'.strip()


def ask_here(ask: Callable[[str, str | None], list[_T]], query: str) -> SessionsHere[_T]:
    """The sessions that fit, of this project or of the nearest folder above it. `ask` takes a query and a folder."""
    first = project()
    rows = ask(in_folder(query, first), None)
    if rows:
        return SessionsHere(rows, first)
    for folder in _above(first):
        rows = ask(query, folder)
        if rows:
            return SessionsHere(rows, folder)
    return SessionsHere([], first)


def _above(project_path: str) -> Iterator[str]:
    """The folders above a project, the nearest first."""
    return (folder for level in levels() for folder in level if not is_in(folder, project_path))


def newest_cards(catalog: Catalog, most: int, *, anywhere: bool) -> list[Card]:
    """Conversations of here or of anywhere, the newest first; where there is none, other sessions."""
    for conversations in (True, False):
        for level in [[None]] if anywhere else levels():
            asked = (catalog.cards(workspace=one, conversations=conversations, limit=most) for one in level)
            rows = [row for page in asked for row in page]
            if rows:
                return sorted(rows, key=lambda row: (row.updated_at is not None, row.updated_at), reverse=True)
    return []


def of_here(rows: list[ListingRow]) -> SessionsHere[ListingRow]:
    """The listed sessions of this project or of the nearest folder above it, and that folder."""
    first = project()
    here = [row for row in rows if row.workspace and is_in(row.workspace, first)]
    if here:
        return SessionsHere(here, first)
    for folder in _above(first):
        here = [row for row in rows if row.workspace == folder]
        if here:
            return SessionsHere(here, folder)
    return SessionsHere([], first)
