"""claw-code: one JSON object per line, a whole copy at every save; before that, one object per file.

Sessions lie flat in `.claw/sessions`, or since 2026 in a folder there that is named for the workspace. What rotation
and `/clear` leave beside a session are copies of it, not sessions: they are read only where they are all that is left,
or where somebody names one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from turnlog.formats import Format, OutputFile, Places, Rendered, Source, Writing
from turnlog.formats._shared.finding import resume_command
from turnlog.formats.seeds.claw.message import NAME
from turnlog.formats.seeds.claw.reading import read
from turnlog.formats.seeds.claw.record import PARTITION, SAFE_ID, copy_of, is_session, partition_of
from turnlog.formats.seeds.claw.writing import write
from turnlog.interop.folder import is_plain_file, is_plain_folder, names_in
from turnlog.interop.place import put_files
from turnlog.interop.value import fields


def homes(places: Places) -> list[str]:
    """Beside the workspace, and in the folder of its configuration."""
    shared = places.environ.get("CLAW_CONFIG_HOME") or os.path.join(places.home, ".claw")
    work = places.workspace
    beside = [os.path.join(work, name) for name in (".claw", ".claude")] if work is not None else []
    return list(dict.fromkeys(os.path.join(folder, "sessions") for folder in (*beside, shared)))


def find(path: str) -> Iterator[Source]:
    """The session in a file; those of a folder, of its `.claw` (formerly `.claude`), and of their partitions."""
    if os.path.isfile(path):
        if is_session(path, is_trusted=_is_ours(os.path.dirname(os.path.abspath(path)))):
            yield Source(NAME, path)
        return
    inner = (os.path.join(path, name) for name in (".claw/sessions", ".claude/sessions", "sessions"))
    for folder in (path, *filter(is_plain_folder, inner)):
        yield from _in_folder(folder)
        for partition in (os.path.join(folder, name) for name in names_in(folder) if PARTITION.fullmatch(name)):
            if is_plain_folder(partition):
                yield from _in_folder(partition)


def _is_ours(folder: str) -> bool:
    parts = folder.split(os.sep)
    return parts[-2:] == [".claw", "sessions"] or (parts[-3:-1] == [".claw", "sessions"] and len(parts[-1]) == 16)


def _in_folder(folder: str) -> Iterator[Source]:
    is_trusted = _is_ours(os.path.abspath(folder))
    names = names_in(folder)
    copies: dict[str, tuple[int, str]] = {}
    for name in names:
        path = os.path.join(folder, name)
        if not is_plain_file(path):
            continue
        if copy := copy_of(name):
            copies[copy.original] = max((copy.at_ms, path), copies.get(copy.original, (-1, "")))
        elif name.endswith((".jsonl", ".json")) and name[0] != "." and is_session(path, is_trusted=is_trusted):
            yield Source(NAME, path)
    for original, (_, path) in sorted(copies.items()):
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
    resume=resume_command("claw", "--resume", "ID", ids=SAFE_ID),
)
