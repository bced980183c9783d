"""Finding the sessions of other agents on the disk."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime

from turnlog.errors import NotFound, TurnlogError, Unavailable
from turnlog.formats import Format, Source, every, format_of, is_known
from turnlog.machine.folder import absolute, workspace_path
from turnlog.machine.formatplaces import lies_in_home, places_of, places_of_person

_FOLDERS = 2000
"""So many folders are searched for sessions at most."""
_SKIPPED_FOLDERS = (".git", "node_modules", ".venv", "__pycache__")


def sources(
    path: str | os.PathLike[str] | None = None, *, agent: str | None = None, workspace: str | None = None
) -> list[Source]:
    """The sessions at a path, or in the folders of the agents; only those of a workspace if it is given."""
    forms = dict(every()) if agent is None else {agent: format_of(agent)}
    listed = _sources_of_agents(forms, workspace) if path is None else _sources_at(absolute(os.fspath(path)), forms)
    unique = list(dict.fromkeys(listed))
    if workspace is None:
        return unique
    return [source for source in unique if _is_for(source, workspace_path(workspace))]


def _sources_at(path: str, forms: dict[str, Format]) -> list[Source]:
    """The sessions at a path. Raises `NotFound` if there are none."""
    if not os.path.lexists(path):
        raise NotFound(f"there is nothing at {path}")
    sessions = [source for form in forms.values() for source in _sources_below(path, form)]
    if not sessions:
        _check_readable(path)
        raise NotFound(f"no session of another agent at {path}", hint=f"looked for {', '.join(forms)}")
    return sessions


def _sources_of_agents(forms: dict[str, Format], workspace: str | None) -> list[Source]:
    """The sessions in the folders where agents keep them."""
    places = places_of(workspace)
    sessions: list[Source] = []
    for form in forms.values():
        # Some keep all sessions together, some in the workspace: without a workspace it is both.
        everywhere = [] if workspace is not None else form.homes(places_of_person())
        for home in dict.fromkeys([*everywhere, *form.homes(places)]):
            if os.path.isdir(home):
                sessions += form.find(home)
    return sessions


def _check_readable(path: str) -> None:
    with mapped_read_errors(path):
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))


@contextmanager
def mapped_read_errors(path: str) -> Generator[None]:
    """Report what the system says while a file of an agent is read as `Unavailable`."""
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be read: {error.strerror or error}", hint="check its owner and mode"
        ) from None


def _sources_below(path: str, form: Format) -> list[Source]:
    """The sessions of an agent at a path; if there are none, those in the folders below, up to a number of folders."""
    sessions = list(form.find(path))
    if sessions or not os.path.isdir(path):
        return sessions
    waiting, folders = deque([path]), 1
    while waiting:
        try:
            inner = sorted(entry.path for entry in os.scandir(waiting.popleft()) if entry.is_dir(follow_symlinks=False))
        except OSError:
            continue
        for folder in inner:
            if os.path.basename(folder) in _SKIPPED_FOLDERS:
                continue
            inside = list(form.find(folder))
            sessions += inside
            if not inside and folders < _FOLDERS:
                waiting.append(folder)
                folders += 1
    return sessions


def _is_for(source: Source, workspace: str) -> bool:
    """Whether a session has that workspace. One that names no workspace counts: it was found there."""
    try:
        folder = format_of(source.agent).read(source).header.workspace
    except OSError:
        return True  # the error is reported when the file is read
    return folder is None or workspace_path(folder) == workspace


def written_at(source: Source) -> datetime | None:
    """When a source was last written; None if it does not exist."""
    try:
        return datetime.fromtimestamp(os.stat(source.path).st_mtime, UTC)
    except OSError:
        return None


def lies_at_home(source: Source) -> bool:
    """Whether a session lies where its agent keeps this person's; a workspace does not count, as it may be a clone."""
    return is_known(source.agent) and lies_in_home(format_of(source.agent), source.path)


def source_of(agent: str, native: str, path: str) -> Source | None:
    """The session with an id, in a file of its own or among others; only in the folders of its agent."""
    form = format_of(agent)
    try:
        if path:
            sources = form.find(path) if os.path.exists(path) else iter(())
            source = next((source for source in sources if source.key in ("", native)), None)
            return source if source is not None and lies_at_home(source) else None
        for home in form.homes(places_of_person()):
            for source in form.find(home) if os.path.isdir(home) else ():
                if source.key == native or (not source.key and native in source.path and _id_of(source) == native):
                    return source
    except (OSError, TurnlogError):
        return None
    return None


def _id_of(source: Source) -> str | None:
    """The id in the header of a session; None if it cannot be read."""
    try:
        return format_of(source.agent).read(source).header.id
    except OSError:
        return None
