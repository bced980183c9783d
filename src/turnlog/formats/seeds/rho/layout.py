"""Where rho keeps its sessions, and how they are put there.

`~/.rho/sessions/<workspace key>/<seconds>_<id>.jsonl`, or a folder of that name with `session.jsonl` in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from turnlog.errors import Conflict
from turnlog.formats import Places, Rendered, Source
from turnlog.formats._shared.finding import entries_in, head_of
from turnlog.formats._shared.place import locked, put_files
from turnlog.formats._shared.records import record_in
from turnlog.formats._shared.value import fields
from turnlog.formats.seeds.rho.message import NAME
from turnlog.formats.seeds.rho.names import workspace_key
from turnlog.formats.seeds.rho.sidecar import SESSION

_KEY = re.compile(r".*-[0-9a-f]{16}")
_MESSAGES = {"System", "User", "Assistant", "ToolResult", "EnrichedAssistant", "AbortedAssistant"}
_GLANCE = 64 << 10


def homes(places: Places) -> list[str]:
    """The folder of all sessions, or that of one workspace."""
    root = os.path.join(places.environ.get("RHO_HOME") or os.path.join(places.home, ".rho"), "sessions")
    return [root if places.workspace is None else os.path.join(root, workspace_key(places.workspace))]


def find(path: str) -> Iterator[Source]:
    """The sessions at a file, in a session's folder, a workspace's, all of rho's, or a home that has one."""
    if not os.path.isdir(path):
        if path.endswith(".jsonl") and _is_session(path):
            yield Source(NAME, path)
        return
    inside = (os.path.join(path, ".rho", "sessions"), os.path.join(path, "sessions"))
    inner = next((folder for folder in inside if os.path.isdir(folder) and not os.path.islink(folder)), "")
    if inner and (inner.endswith(f".rho{os.sep}sessions") or os.path.basename(os.path.normpath(path)) == ".rho"):
        yield from _under(inner, 2)
    yield from _under(path, 2)


def _under(folder: str, depth: int) -> Iterator[Source]:
    session = os.path.join(folder, SESSION)
    if os.path.lexists(session) and not os.path.islink(session) and _is_session(session):
        yield Source(NAME, session)
        return
    for entry in entries_in(folder):
        if entry.is_dir(follow_symlinks=False):
            if depth and (_KEY.fullmatch(entry.name) or os.path.lexists(os.path.join(entry.path, SESSION))):
                yield from _under(entry.path, depth - 1)
        elif entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False) and _is_session(entry.path):
            yield Source(NAME, entry.path)


def _is_session(path: str) -> bool:
    """Whether the first lines are rho's: others have sessions in lines with a `type`, but not with such times."""
    data = head_of(path, _GLANCE) if os.path.isfile(path) else None
    # A header longer than `_GLANCE` is not recognised.
    head, *rest = (data or b"").split(b"\n", 20)[:20]
    return _is_header(record_in(head)) or any(_is_record(record_in(line)) for line in [head, *rest])


def _is_header(record: dict[str, Any]) -> bool:
    return (
        record.get("type") == "session" and type(record.get("version")) is int and isinstance(record.get("id"), str)
        and _is_time(record.get("timestamp")) and "cwd" in record
    )  # fmt: skip


def _is_record(record: dict[str, Any]) -> bool:
    if not _is_time(record.get("timestamp")):
        return False
    if record.get("type") == "message":
        return not _MESSAGES.isdisjoint(fields(record.get("message")))
    return record.get("type") == "node" and "transition" in record


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and value.isascii() and value.isdigit()


def place(written: Rendered, folder: str, *, force: bool = False) -> str:
    """Lay a session out, readable by its owner only, unless rho has it open.

    The folder is that of all sessions, or that of the session's workspace.
    """
    workspace, unit = written.files[0].path.split("/")[:2]
    if os.path.basename(os.path.abspath(folder)) == workspace:
        folder = os.path.dirname(os.path.abspath(folder))
    own = os.path.join(folder, workspace)
    with ExitStack() as stack:  # rho holds the lease of a session that it has open, and of one that it removes
        for place in (own, os.path.join(own, unit)):
            lease = os.path.join(place, f".{written.id}.active.lock")
            busy = Conflict(f"rho has this session open ({lease})", hint="close it there, and try again")
            stack.enter_context(locked(lease, busy, create=False))
        return put_files(written.files, folder, force=force)[0]
