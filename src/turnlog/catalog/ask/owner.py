"""The owner of each session, as far as it is known: user and machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from turnlog.catalog.index.columns import path_of
from turnlog.log.startup import pattern
from turnlog.machine.process import host_name

if TYPE_CHECKING:
    from turnlog.catalog.index.index import Index

UNKNOWN = "unknown"
_HOME = pattern(r"(?:/(?:var/|export/)?home|/Users|(?:[A-Za-z]:|/mnt/[a-z])[/\\]Users)[/\\]([^/\\]+)")
_HOST = 2
"""The part of a writer that names its machine."""


def owners(index: Index) -> Iterator[tuple[int, str, str]]:
    """For every session: its row, the user in whose home folder it worked, and the machine that wrote it.

    A session of another agent lies on this machine. An imported one does not know where it was written.
    """
    here = host_name()
    for id, is_ours, workspace, path, writer in index.whereabouts():
        user = user_of(path_of(workspace or "")) or ("" if is_ours else user_of(path_of(path)))
        yield id, user or UNKNOWN, (_host(writer) if is_ours else here) or UNKNOWN


def user_of(path: str) -> str:
    """The user in whose home folder a path is; "" if it is in none."""
    if path.split("/")[:2] == ["", "root"]:
        return "root"
    match = _HOME.match(path)
    return match[1] if match else ""


def _host(writers: str) -> str:
    """The machine of the last writer."""
    last = writers.rpartition("\n")[2].split("\t")
    return last[_HOST] if len(last) > _HOST else ""
