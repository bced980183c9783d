"""claw-code: one JSON object per line, a whole copy at every save; before that, one object per file.

Sessions lie flat in `.claw/sessions`, or since 2026 in a folder there that is named for the workspace. What rotation
and `/clear` leave beside a session are copies of it, not sessions: they are read only where they are all that is left,
or where somebody names one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from turnlog.formats import Format, OutputFile, Places, Rendered, Resuming, Source, Writing
from turnlog.formats._shared.finding import is_plain_file, names_in
from turnlog.formats._shared.place import put_files
from turnlog.formats._shared.value import fields
from turnlog.formats.seeds.claw.reading import read
from turnlog.formats.seeds.claw.record import PARTITION, copy_of, is_session, is_session_name, partition_of
from turnlog.formats.seeds.claw.writing import NAME, write


def homes(places: Places) -> list[str]:
    """Beside the workspace, and in the folder of its configuration."""
    shared = places.environ.get("CLAW_CONFIG_HOME") or os.path.join(places.home, ".claw")
    folders = [os.path.join(shared, "sessions")]
    if places.workspace is not None:
        beside = [os.path.join(places.workspace, name, "sessions") for name in (".claw", ".claude")]
        folders = [*beside, *folders]
    return list(dict.fromkeys(folders))


def find(path: str) -> Iterator[Source]:
    """The session in a file; those of a folder, of its `.claw` (formerly `.claude`), and of their partitions."""
    if os.path.isfile(path):
        if is_session(path, is_trusted=_is_ours(os.path.dirname(os.path.abspath(path)))):
            yield Source(NAME, path)
        return
    if not os.path.isdir(path):
        return
    for folder in (path, *(os.path.join(path, *inner) for inner in _INNER)):
        if os.path.isdir(folder) and not (folder != path and os.path.islink(folder)):
            yield from _in_folder(folder)
            for name in names_in(folder):
                inner = os.path.join(folder, name)
                if PARTITION.fullmatch(name) and os.path.isdir(inner) and not os.path.islink(inner):
                    yield from _in_folder(inner)


_INNER = ((".claw", "sessions"), (".claude", "sessions"), ("sessions",))


def _is_ours(folder: str) -> bool:
    parts = folder.split(os.sep)
    return parts[-2:] == [".claw", "sessions"] or (parts[-3:-1] == [".claw", "sessions"] and len(parts[-1]) == 16)


def _in_folder(folder: str) -> Iterator[Source]:
    is_trusted = _is_ours(os.path.abspath(folder))
    names = names_in(folder)
    copies: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        path = os.path.join(folder, name)
        if not is_plain_file(path):
            continue
        copy = copy_of(name)
        if copy is not None:
            copies.setdefault(copy.original, []).append((copy.at_ms, name))
        elif is_session_name(name) and is_session(path, is_trusted=is_trusted):
            yield Source(NAME, path)
    for original, paths in sorted(copies.items()):
        path = os.path.join(folder, max(paths)[1])
        # A crash between its two renames leaves a session without a file of its own.
        if original not in names and is_session(path, is_trusted=is_trusted):
            yield Source(NAME, path, original)


def place(written: Rendered, folder: str, *, force: bool = False) -> str:
    """In a folder `sessions`, where claw looks for the sessions of that workspace; in any other, just there."""
    workspace = fields(written.about).get("partition")
    file = written.files[0]
    path = file.path
    if workspace and os.path.basename(os.path.abspath(folder)) == "sessions":
        path = f"{partition_of(workspace)}/{path}"
    return put_files([OutputFile(path, file.data, file.mode)], folder, force=force)[0]


_VERSIONS = {1: "every claw-code since 12c364da of 2026-04", 2: "claw-code of 2026-08 or newer"}
"""claw itself calls both version 1."""
FORMAT = Format(
    "claw-code: sessions of 2026-03 to 2026-08, with older object files",
    homes,
    find,
    read,
    write=Writing(render=write, place=place, versions=_VERSIONS),
    resume=Resuming(
        command=lambda id, path, workspace: ["claw", "--resume", id], ids=r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}"
    ),
)
