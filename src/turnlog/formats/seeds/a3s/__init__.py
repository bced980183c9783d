"""a3s-code: one document per session, rewritten at every save; since 3.0 in a tree with a write-ahead log.

The flat layout names files so that several ids share one. We write the name that a3s looks for, but never over a file
that holds another session, forced or not. A key of a provider is read past and kept nowhere.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from turnlog.errors import AlreadyExists, Corrupt, Unavailable
from turnlog.formats import Format, Places, Problem, Rendered, Resuming, Source, Writing
from turnlog.formats._shared.finding import is_plain_file, names_in
from turnlog.formats._shared.json import decoded, document
from turnlog.formats._shared.place import Taken, locked, put_files
from turnlog.formats._shared.value import fields
from turnlog.formats.seeds.a3s.layout import LEASE, LOCK, TREE, WAL, digest_of, tree_name, wal_entries, wal_line
from turnlog.formats.seeds.a3s.message import NAME
from turnlog.formats.seeds.a3s.reading import id_at, is_session, read
from turnlog.formats.seeds.a3s.writing import write

_ID = r"[^-\x00-\x1f\x7f][^\x00-\x1f\x7f]{0,199}"
_INNER = ((), ("sessions",), (".a3s", "sessions"))


def homes(places: Places) -> list[str]:
    """Where its examples and its settings put them: a3s itself has no fixed place."""
    folders = [os.path.join(places.home, ".a3s", "sessions")]
    if places.workspace is not None:
        folders.insert(0, os.path.join(places.workspace, ".a3s", "sessions"))
    return list(dict.fromkeys(folders))


def find(path: str) -> Iterator[Source]:
    """The session in a file; those of a folder, of its tree, and of the `.a3s/sessions` in it."""
    if os.path.isfile(path):
        if path.endswith(".json") and is_session(path):
            yield Source(NAME, path)
        return
    for inner in _INNER:
        folder = os.path.join(path, *inner) if inner else path
        if os.path.isdir(folder) and not (inner and os.path.islink(folder)):
            yield from _in_folder(folder)


def _in_folder(folder: str) -> Iterator[Source]:
    tree = os.path.join(folder, TREE, "sessions")
    newer = set(_names(tree)) if not os.path.islink(os.path.join(folder, TREE)) else set[str]()
    for path in _sessions(tree, sorted(newer)):
        yield Source(NAME, path)
    for path in _sessions(folder, _names(folder)):
        # What was moved to the tree stays behind as it was.
        if tree_name(id_at(path) or "") not in newer:
            yield Source(NAME, path)


def _sessions(folder: str, names: list[str]) -> Iterator[str]:
    paths = (os.path.join(folder, name) for name in names)
    return (path for path in paths if is_plain_file(path) and is_session(path))


def _names(folder: str) -> list[str]:
    return [name for name in names_in(folder) if name.endswith(".json")]


def place(written: Rendered, folder: str, *, force: bool = False) -> str:
    """In the folder that a3s is given for its sessions; in its tree, if that is where the session came from."""
    target = os.path.join(folder, written.files[0].path)
    if os.path.isfile(target) and id_at(target) not in (None, written.id):
        raise AlreadyExists(
            f"{target} is session {id_at(target)!r:.80}: a3s would read {written.id!r:.80} from there, too",
            hint="choose another folder with -o",
        )
    if not fields(written.about).get("tree"):
        return put_files(written.files, folder, force=force)[0]
    return _into_tree(written, folder, force=force)


def _into_tree(written: Rendered, folder: str, *, force: bool) -> str:
    """As a3s saves: what is meant to happen into its log, then the files, then that it happened."""
    lease, log = os.path.join(folder, LEASE), os.path.join(folder, WAL)
    if os.path.exists(lease) and not force:
        held = decoded(document(lease)[0])
        holder = "somebody" if held is None else str(fields(held).get("holderId"))
        raise Unavailable(f"{folder} is leased to {holder!r:.80}", hint="stop that a3s first, then use --force")
    lock = os.path.join(folder, LOCK)
    with locked(lock, Unavailable(f"a3s is saving: {lock} is locked", hint="try again")):
        problems: list[Problem] = []
        number = max((entry.sequence for entry in wal_entries(log, problems)), default=0) + 1
        if problems:
            raise Corrupt(f"{log} is damaged: {problems[0].what}", hint="start a3s once, so that it mends its log")
        for path in (os.path.join(folder, file.path) for file in written.files):
            if os.path.lexists(path) and not force:
                raise Taken(path)
        digest = digest_of(written.files[0].data)
        _append(log, wal_line(number, written.id, digest, "intent", time.time_ns() // 1_000_000))
        path = put_files(written.files, folder, force=force)[0]
        _append(log, wal_line(number, written.id, digest, "committed", time.time_ns() // 1_000_000))
        return path


def _append(path: str, line: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        os.write(fd, line)
        os.fsync(fd)
    finally:
        os.close(fd)


FORMAT = Format(
    "a3s-code: session files of 1.x and 2.x, and the tree of 3.x to 9.0",
    homes,
    find,
    read,
    write=Writing(render=write, place=place, versions={1: "every a3s-code"}),
    resume=Resuming(command=lambda id, path, workspace: ["a3s", "code", "resume", id], ids=_ID),
)
