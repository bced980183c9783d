"""Where other agents keep their sessions: their folders, and the files in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from turnlog.formats import Places, Source

_DEEP = 3


def names_in(folder: str, end: str = "") -> list[str]:
    """What is in a folder, of those names that end so; nothing where there is none."""
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(end))
    except OSError:
        return []


def entries_in(folder: str) -> list[os.DirEntry[str]]:
    """What is in a folder, by name; nothing in one that cannot be opened."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def is_plain_file(path: str) -> bool:
    """Whether it is a file, and no link to one."""
    return os.path.isfile(path) and not os.path.islink(path)


def workspace_over(folder: str, outer: str, inner: str) -> str | None:
    """The workspace whose `outer/inner` that folder is; None if it is no such folder."""
    above, name = os.path.split(folder)
    return os.path.dirname(above) if (os.path.basename(above), name) == (outer, inner) else None


def head_of(path: str, size: int = 1 << 16) -> bytes | None:
    """The beginning of a file; None where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(size)
    except OSError:
        return None


def beneath(variables: str, default: str, *folders: str) -> Callable[[Places], list[str]]:
    """`Format.homes` of an agent that keeps sessions in folders of one that a variable names, or under the home."""

    def homes(places: Places) -> list[str]:
        named = (folder for name in variables.split() if (folder := places.environ.get(name)))
        base = next(named, os.path.join(places.home, default))
        return [os.path.join(base, folder) for folder in folders]

    return homes


def inside(folder: str) -> Callable[[Places], list[str]]:
    """`Format.homes` of an agent that keeps sessions with the work they are about."""
    return lambda places: [os.path.join(places.workspace, folder)] if places.workspace else []


def found_by(agent: str, is_ours: Callable[[str], bool]) -> Callable[[str], Iterator[Source]]:
    """`Format.find` of an agent that keeps a session in each of its files."""
    return lambda path: (Source(agent, file) for file in files_under(path) if is_ours(file))


def homes_under(folder: str, outer: str, inner: str, depth: int = 0) -> Iterator[str]:
    """A folder, and at most three down those in which an agent keeps sessions as `outer/inner`, in a steady order."""
    yield folder
    is_mine = os.path.basename(folder) == outer
    for name in [entry.name for entry in entries_in(folder) if entry.is_dir(follow_symlinks=False)]:
        if name == inner if is_mine else name == outer and depth <= _DEEP:
            yield from homes_under(os.path.join(folder, name), outer, inner, _DEEP + 1)
        elif not is_mine and not name.startswith(".") and name != "node_modules" and depth < _DEEP:
            yield from homes_under(os.path.join(folder, name), outer, inner, depth + 1)


def files_under(path: str) -> Iterator[str]:
    """A file itself, or every file in a folder and below it, in a steady order."""
    if os.path.isfile(path):
        yield path
        return
    for folder, folders, files in os.walk(path):
        folders.sort()
        yield from (os.path.join(folder, name) for name in sorted(files))
