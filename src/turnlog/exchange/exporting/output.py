"""Sessions exported to a file or a folder."""

from __future__ import annotations

import os

from msgspec import Struct

from turnlog.errors import Invalid
from turnlog.exchange.exporting.readback import ExportCounts
from turnlog.exchange.exporting.transcript import transcript_of
from turnlog.exchange.exporting.writing import notes_on, writing_of, written_for
from turnlog.formats import format_of
from turnlog.formats._shared.transcript import Loss, Rendered
from turnlog.interop.place import put_file
from turnlog.machine.folder import absolute
from turnlog.machine.formatplaces import lies_in_home
from turnlog.thread.reader import SessionReader


class Exported(Struct, frozen=True):
    """What was written where, under which id, and what the other format could not carry."""

    agent: str
    id: str
    path: str
    lost: list[Loss]
    carried: ExportCounts = ExportCounts()
    notes: list[str] = []
    """What a person should know besides: which releases of the agent open it, where its first one does not."""


def export(
    session: SessionReader,
    agent: str,
    target: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    format_version: int | None = None,
    include_ignored: bool = False,
) -> Exported:
    """Write a session for another agent: to a file, into a folder in that agent's layout, or into the current folder.

    Every release of it opens that, unless the session came from a newer one or `format_version` asks for more. `force`
    overwrites; what is in ignored files stays here unless `include_ignored`, and is named as lost. In a folder where
    the agent keeps its own sessions it carries no spending, so that nobody counts it twice.
    """
    transcript = transcript_of(session, include_ignored=include_ignored)
    is_free = lies_in_home(format_of(agent), os.curdir if target is None else os.fspath(target))
    written, carried = written_for(transcript, agent, format_version, is_free=is_free)
    path = put(written, agent, target, force=force)
    return Exported(agent, written.id, path, written.lost, carried, notes_on(written))


def put(written: Rendered, agent: str, target: str | os.PathLike[str] | None = None, *, force: bool = False) -> str:
    """Put what was written into a file or a folder, and return the path of the session itself."""
    path = absolute(os.fspath(target) if target is not None else os.path.basename(written.files[0].path))
    is_folder = target is not None and (os.fspath(target).endswith("/") or os.path.isdir(path))
    if is_folder:
        return writing_of(format_of(agent), agent).place(written, path, force=force)
    if len(written.files) > 1:
        names = ", ".join(output.path for output in written.files)
        raise Invalid(f"a session of {agent} is several files: {names}", hint="give a folder: -o FOLDER/")
    output = written.files[0]
    put_file(path, output.data, mode=output.mode, force=force)
    return path
