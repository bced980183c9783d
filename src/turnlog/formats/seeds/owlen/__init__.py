"""owlen: a file per checkpoint in `.owlen/checkpoints` of a workspace, each with the whole conversation so far.

All checkpoints that name the same start are one session that grows; where one does not go on from the one before it,
owlen was rewound in between, and here that is a branch. A checkpoint is a note that says after which message it was
made, with its name, its time, its statistics and the texts of files before and after. Its token count is an estimate
and is never counted as spent.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from turnlog.formats import Format, Rendered, Source, Writing
from turnlog.formats._shared.finding import homes_in_workspace, workspace_over
from turnlog.formats.seeds.owlen.checkfile import AGENT
from turnlog.formats.seeds.owlen.reading import checkpoint_files, opening, read, workspace_of
from turnlog.formats.seeds.owlen.writing import write
from turnlog.interop.folder import head_of, homes_under
from turnlog.interop.place import Taken, put_files, safe_name


def find(path: str) -> Iterator[Source]:
    """The session of one checkpoint, those of a folder of checkpoints, or of workspaces at most three folders down."""
    if os.path.isfile(path):
        if path.endswith(".json") and (opening(path).is_checkpoint or workspace_of(path) is not None):
            yield Source(AGENT, path)
        return
    for folder in homes_under(path, ".owlen", "checkpoints"):
        is_home = workspace_over(folder, ".owlen", "checkpoints") is not None
        openings = [one for one in map(opening, checkpoint_files(folder)) if is_home or one.is_checkpoint]
        # In the order in which they began.
        for one in sorted({one.key: one for one in openings}.values(), key=lambda one: one.start or [1 << 62, 0]):
            yield Source(AGENT, folder, one.key)


def place(written: Rendered, folder: str, *, force: bool = False) -> str:
    """Put the checkpoints into a folder of checkpoints. Those that are there already, to the byte, are left alone."""
    paths = [os.path.join(folder, safe_name(output.path)) for output in written.files]
    pairs = zip(written.files, paths, strict=True)
    new = [output for output, path in pairs if force or not _is_there(path, output.data)]
    put_files(new, folder, force=force)
    return paths[0]


def _is_there(path: str, data: bytes) -> bool:
    if not os.path.lexists(path):
        return False
    if os.path.islink(path) or not os.path.isfile(path):
        raise Taken(path)
    return head_of(path, len(data) + 1) == data


FORMAT = Format(
    "owlen checkpoints",
    homes_in_workspace(".owlen/checkpoints"),
    find,
    read,
    write=Writing(render=write, place=place, versions={1: "every owlen"}),
)
