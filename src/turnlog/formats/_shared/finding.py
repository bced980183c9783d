"""Where other agents keep their sessions: in folders, in the files there, in a database."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

from turnlog.formats import Places, Resuming, Source
from turnlog.formats._shared.key import UUIDS
from turnlog.interop.folder import files_under
from turnlog.interop.problem import Problems, report
from turnlog.interop.sqlite import ERRORS, ForeignDatabase, TooMuch, opened


def workspace_over(folder: str, outer: str, inner: str) -> str | None:
    """The workspace whose `outer/inner` that folder is; None if it is no such folder."""
    above, name = os.path.split(folder)
    return os.path.dirname(above) if (os.path.basename(above), name) == (outer, inner) else None


def folder_of(places: Places, variables: str, default: str) -> str:
    """The folder that the first of these variables names, or one under the home."""
    named = (folder for name in variables.split() if (folder := places.environ.get(name)))
    return next(named, os.path.join(places.home, default))


def homes_under_variable(variables: str, default: str, *folders: str) -> Callable[[Places], list[str]]:
    """`Format.homes` of an agent that keeps sessions in folders of one that a variable names, or under the home."""
    return lambda places: [os.path.join(folder_of(places, variables, default), folder) for folder in folders]


def homes_in_workspace(folder: str) -> Callable[[Places], list[str]]:
    """`Format.homes` of an agent that keeps sessions with the work they are about."""
    return lambda places: [os.path.join(places.workspace, folder)] if places.workspace else []


def find_files(agent: str, is_ours: Callable[[str], bool]) -> Callable[[str], Iterator[Source]]:
    """`Format.find` of an agent that keeps a session in each of its files."""
    return lambda path: (Source(agent, file) for file in files_under(path) if is_ours(file))


def sessions_in(agent: str, path: str, table: str, created: str) -> list[Source]:
    """The sessions of a database, oldest first.

    One whose sessions cannot be listed stands for them itself, without a key: whoever reads it is told why.
    """
    try:
        with opened(path) as base:
            order = f"{created}, id" if base.has(table, created) else "id"
            return [Source(agent, path, str(row[0])) for row in base.rows(table, only=("id",), order=order)]
    except (OSError, *ERRORS):
        return [Source(agent, path)]


@contextmanager
def opened_for(source: Source, *, has_keys: bool = True) -> Generator[ForeignDatabase]:
    """A database to read one session from. Raises `OSError` for whatever is wrong with it."""
    try:
        with opened(source.path) as base:
            if has_keys and not source.key:
                raise TooMuch("its sessions cannot be listed")
            yield base
    except ERRORS as error:
        raise OSError(f"{source.path}: {error}") from None


@contextmanager
def read_from(source: Source, problems: Problems) -> Generator[ForeignDatabase]:
    """The same, once its session is found: what is wrong from there on is told, and ends the reading."""
    try:
        with opened(source.path) as base:
            yield base
    except ERRORS as error:
        report(problems, f"the database cannot be read any further: {error}")


def resume_command(*command: str, ids: str = UUIDS) -> Resuming:
    """`Format.resume` of an agent that goes on with the session whose id stands in the place of `ID` in a command."""
    return Resuming(command=lambda id, path, workspace: [word.replace("ID", id) for word in command], ids=ids)
