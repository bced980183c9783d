"""sofos: one JSON document per session in `.sofos/sessions` of a workspace, rewritten whole at every save.

A message of sofos may mix results and text; here each is a message of its own, and `origin` says that they belong
together. The display transcript, which goes its own way, is the fact `sofos.display`; counters and times are in
`sofos.file`. Both are as of when the file was last read: what was said and spent since is added to them on writing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, cast

from turnlog.errors import Unavailable
from turnlog.formats import Format, Rendered, Resuming, Source, Writing
from turnlog.formats._shared.finding import homes_in_workspace
from turnlog.formats.seeds.sofos.reading import read, workspace_of
from turnlog.formats.seeds.sofos.sessionfile import AGENT
from turnlog.formats.seeds.sofos.writing import row_of, write
from turnlog.interop.folder import homes_under, is_plain_file, names_in
from turnlog.interop.json import decode
from turnlog.interop.jsonline import document
from turnlog.interop.place import Taken, locked, put_file, safe_name
from turnlog.interop.rust import pretty
from turnlog.interop.salvage import salvage
from turnlog.interop.value import as_list, fields

INDEX = "index.json"
LOCK = ".save.lock"
_WAIT_S = 60.0
_HEAD = 64 << 10
_ROW = {"id": str, "preview": str, "created_at": int, "updated_at": int, "message_count": int}


def find(path: str) -> Iterator[Source]:
    """The sessions in a file, in the folder of sessions, or in workspaces at most three folders down."""
    if os.path.isfile(path):
        files = iter([path] if os.path.basename(path) != INDEX else [])
    else:
        inner = (file for folder in homes_under(path, ".sofos", "sessions") for file in _session_files(folder))
        files = filter(is_plain_file, inner)
    yield from (Source(AGENT, file) for file in files if _is_at_home(file) or _is_session(file))


def _session_files(folder: str) -> list[str]:
    """What can be sessions in a folder: not the index, not the remains of a save."""
    names = [name for name in names_in(folder, ".json") if name != INDEX and not name.startswith(".")]
    return [os.path.join(folder, name) for name in names]


def _is_at_home(path: str) -> bool:
    """Whether it lies where sofos keeps sessions, under a name it gives: a session, however damaged."""
    return workspace_of(path) is not None and os.path.basename(path).startswith("session_")


def _is_session(path: str) -> bool:
    """By its first keys: others keep sessions in JSON, too."""
    try:
        data, more = document(path, limit=_HEAD)
    except OSError:
        return False
    head = fields(salvage(data)[0]) if b"messages" in data else {}
    if "api_messages" in head:
        return True
    # The very first versions; a3s and claw have other keys before `messages`, or beside it.
    is_first = list(head)[:2] == ["id", "messages"]
    return is_first and ("system_prompt" in head or (bool(more) and len(head) == 2))


def place(written: Rendered, folder: str, *, force: bool = False) -> str:
    """Save as sofos would in its folder of sessions: file first, then index, both under its lock."""
    output = written.files[0]
    path = os.path.join(folder, safe_name(output.path))
    busy = Unavailable(f"sofos has {folder} locked", hint="try again")
    with locked(os.path.join(folder, LOCK), busy, wait_s=_WAIT_S):
        if not force and os.path.lexists(path):
            raise Taken(path)
        put_file(path, output.data, mode=output.mode, force=force)
        own = cast("dict[str, Any]", written.about)
        rows = [*_rows(folder), own]
        first = next(row for row in rows if row["id"] == own["id"])
        rows = [{**first, **own} if row is first else row for row in rows if row is first or row["id"] != own["id"]]
        rows.sort(key=lambda row: row["updated_at"], reverse=True)
        put_file(os.path.join(folder, INDEX), pretty({"sessions": rows}), force=True)
    return path


def _rows(folder: str) -> list[dict[str, Any]]:
    """The rows of the index; where it cannot be read, one for each session in the folder."""
    try:
        rows = fields(decode(document(os.path.join(folder, INDEX))[0])).get("sessions")
    except (OSError, ValueError):
        rows = None
    if isinstance(rows, list) and all(map(_is_row, as_list(rows))):
        return as_list(rows)
    return [row for path in _session_files(folder) if (row := _row_at(path)) is not None]


def _row_at(path: str) -> dict[str, Any] | None:
    """The row of a session that sofos itself could load; it would stumble over any other."""
    try:
        row = row_of(fields(decode(document(path)[0])))
    except (OSError, ValueError, KeyError):
        return None
    return row if _is_row(row) and f"{row['id']}.json" == os.path.basename(path) else None


def _is_row(row: Any) -> bool:
    return all(isinstance(fields(row).get(name), kind) for name, kind in _ROW.items())


FORMAT = Format(
    "sofos 0.1 to 0.4.3",
    homes_in_workspace(".sofos/sessions"),
    find,
    read,
    # sofos itself does not number them.
    write=Writing(render=write, place=place, versions={1: "sofos 0.2.8 or newer", 2: "sofos 0.4.3 or newer"}),
    # It asks which; the newest comes first.
    resume=Resuming(command=lambda id, path, workspace: ["sofos", "--resume"]),
)
