"""opencode: a database under `~/.local/share/opencode`, folders of JSON in early versions, exports, captured events."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

from turnlog.formats import Format, Places, Resuming, Source, Watching, Writing
from turnlog.formats._shared.records import names_in
from turnlog.formats._shared.sqlite import sessions_in
from turnlog.formats.opencode.model import configured
from turnlog.formats.opencode.reading import grown, read
from turnlog.formats.opencode.shelf import NAME, in_export, in_storage, is_database, is_export, stamps, storage_of


def homes(places: Places) -> list[str]:
    """See `turnlog.formats`."""
    base = places.environ.get("XDG_DATA_HOME") or os.path.join(places.home, ".local", "share")
    return [os.path.join(base, "opencode")]


def find(path: str) -> Iterator[Source]:
    """See `turnlog.formats`."""
    if os.path.isfile(path):
        yield from _in_file(path)
        return
    if _is_storage(path):
        yield from in_storage(path)
        return
    for folder, folders, files in os.walk(path):
        folders.sort()
        for name in [name for name in folders if _is_storage(os.path.join(folder, name))]:
            folders.remove(name)
            yield from in_storage(os.path.join(folder, name))
        for name in sorted(files):
            yield from _in_file(os.path.join(folder, name))


def _in_file(path: str) -> Iterator[Source]:
    if path.endswith(".db"):
        if is_database(path):
            yield from sessions_in(NAME, path, "session", "time_created")
    elif path.endswith(".json") and storage_of(path):
        yield Source(NAME, path)
    elif path.endswith((".json", ".jsonl")) and is_export(path):
        yield from in_export(path)


def _is_storage(folder: str) -> bool:
    return all(os.path.isdir(os.path.join(folder, name)) for name in ("session", "message", "part"))


def resume(id: str, path: str, workspace: str) -> list[str]:
    """See `turnlog.formats`. What is not in its database has to be taken in first."""
    if storage_of(path) or any(source.key == id for source in _databases(os.path.dirname(path))):
        return ["opencode", "-s", id]
    return ["sh", "-c", f"opencode import {shlex.quote(path)} && opencode -s {shlex.quote(id)}"]


def _databases(folder: str) -> Iterator[Source]:
    for name in names_in(folder, ".db"):
        yield from _in_file(os.path.join(folder, name))


def _writing() -> Writing:
    from turnlog.formats.opencode.writing import WRITING  # who only reads does not load what writes

    return WRITING


FORMAT = Format(
    "opencode: its database, storage folders, exports and captured events",
    homes,
    find,
    read,
    write=_writing,
    resume=Resuming(command=resume, ids=r"ses_[0-9A-Za-z]{1,80}", model=configured),
    growth=grown,
    watch=Watching(apart=("bin", "log", "message", "part", "snapshot", "tool-output"), stamps=stamps),
)
