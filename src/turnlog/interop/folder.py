"""Folders and files of other programs, looked at without trust in what is there."""

from __future__ import annotations

import os
from collections.abc import Iterator

from turnlog.interop.problem import Problems, report


def names_in(folder: str, end: str = "") -> list[str]:
    """The names in a folder that have this suffix; none if there is no such folder."""
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(end))
    except OSError:
        return []


def entries_in(folder: str) -> list[os.DirEntry[str]]:
    """The entries of a folder, by name; none if it cannot be opened."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def is_plain_path(path: str) -> bool:
    """Whether a path is absolute, and written in the shortest way."""
    is_absolute = path.startswith("/") and not path.startswith("//") and len(path) > 1 and "\0" not in path
    return is_absolute and os.path.normpath(path) == path


def is_plain_file(path: str) -> bool:
    """Whether a path is a regular file, and not a link to one."""
    return os.path.isfile(path) and not os.path.islink(path)


def is_plain_folder(path: str) -> bool:
    """Whether a path is a folder, and not a link to one."""
    return os.path.isdir(path) and not os.path.islink(path)


def at_once(path: str, flags: int) -> int:
    """For `open`: a pipe in the place of a file is opened at once, and is empty. Nobody waits for who may write."""
    return os.open(path, flags | os.O_NONBLOCK)


def head_of(path: str, size: int = 1 << 16) -> bytes | None:
    """The beginning of a file; None if it cannot be read."""
    try:
        with open(path, "rb", opener=at_once) as file:
            return file.read(size)
    except OSError:
        return None


def files_under(path: str) -> Iterator[str]:
    """A file itself, or every file in a folder and below it, in a steady order."""
    if os.path.isfile(path):
        yield path
        return
    for folder, folders, files in os.walk(path):
        folders.sort()
        yield from (os.path.join(folder, name) for name in sorted(files))


def plain_files_under(folder: str, problems: Problems, depth: int = 0) -> Iterator[str]:
    """Every plain file in a folder and below it, in a steady order, no link followed. Too deep a folder is told."""
    for entry in entries_in(folder):
        if entry.is_file(follow_symlinks=False):
            yield entry.path
        elif entry.is_dir(follow_symlinks=False):
            if depth < _DEEPEST:
                yield from plain_files_under(entry.path, problems, depth + 1)
            else:
                report(problems, f"nested more than {_DEEPEST} folders deep: not read", where=entry.name[:200])


_DEEPEST = 8
_DEEP = 3


def homes_under(folder: str, outer: str, inner: str, depth: int = 0) -> Iterator[str]:
    """A folder, and every folder `outer/inner` in it whose parent is at most three levels down, in a steady order."""
    yield folder
    is_outer = os.path.basename(folder) == outer
    for name in [entry.name for entry in entries_in(folder) if entry.is_dir(follow_symlinks=False)]:
        is_inner_of_it = is_outer and name == inner
        is_one_more_outer = not is_outer and name == outer and depth <= _DEEP
        if is_inner_of_it or is_one_more_outer:
            yield from homes_under(os.path.join(folder, name), outer, inner, _DEEP + 1)
        elif not is_outer and not name.startswith(".") and name != "node_modules" and depth < _DEEP:
            yield from homes_under(os.path.join(folder, name), outer, inner, depth + 1)
