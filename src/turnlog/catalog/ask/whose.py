"""Whose sessions are, as far as they know it: the user and the machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from turnlog.catalog.index.texts import path_of
from turnlog.machine.process import host_name

if TYPE_CHECKING:
    from turnlog.catalog.index.index import Index

UNKNOWN = "unknown"
_HOME = re.compile(r"(?:/(?:var/|export/)?home|/Users|(?:[A-Za-z]:|/mnt/[a-z])[/\\]Users)[/\\]([^/\\]+)")
_HOST = 2
"""Which part of a writer says its machine."""


def whose(index: Index) -> Iterator[tuple[int, str, str]]:
    """Of every session: its number, the user in whose home folder it worked, and the machine that wrote it.

    A session of another agent lies on this machine. One that was imported does not know where it was written.
    """
    here = host_name()
    for id, is_ours, workspace, path, writer in index.whereabouts():
        user = user_of(path_of(workspace or "")) or ("" if is_ours else user_of(path_of(path)))
        yield id, user or UNKNOWN, (_host(writer) if is_ours else here) or UNKNOWN


def user_of(path: str) -> str:
    """In whose home folder a path is; "" in nobody's."""
    if path.split("/")[:2] == ["", "root"]:
        return "root"
    match = _HOME.match(path)
    return match[1] if match else ""


def _host(writers: str) -> str:
    """The machine of the last process that wrote."""
    last = writers.rpartition("\n")[2].split("\t")
    return last[_HOST] if len(last) > _HOST else ""
