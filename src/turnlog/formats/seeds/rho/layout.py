"""Where rho keeps its sessions, and how they are put there.

`~/.rho/sessions/<workspace key>/<seconds>_<id>.jsonl`, or a folder of that name with `session.jsonl` in it.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from turnlog.errors import Conflict, OutOfSpace, Unavailable
from turnlog.formats import Places, Rendered, Source
from turnlog.formats._shared.finding import entries_in, head_of
from turnlog.formats._shared.place import private_folders, put_files, safe_name
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
    inner = next(
        (p for p in (os.path.join(path, ".rho", "sessions"), os.path.join(path, "sessions")) if _is_dir(p)), ""
    )
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


def _is_dir(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _is_session(path: str) -> bool:
    """Whether the first lines are rho's: others have sessions in lines with a `type`, but not with such times."""
    data = head_of(path, _GLANCE) if os.path.isfile(path) else None
    # A header that is longer than a head_of is none.
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
    for output in written.files:
        for part in output.path.split("/"):
            safe_name(part, limit=255)
    workspace, unit = written.files[0].path.split("/")[:2]
    if os.path.basename(os.path.abspath(folder)) == workspace:
        folder = os.path.dirname(os.path.abspath(folder))
    own = os.path.join(folder, workspace)
    _private(folder)
    with ExitStack() as stack:
        for place in (own, os.path.join(own, unit)):
            stack.enter_context(_not_open(os.path.join(place, f".{written.id}.active.lock")))
        for output in written.files:
            _private(os.path.join(folder, os.path.dirname(output.path)))
        return put_files(written.files, folder, force=force)[0]


def _private(folder: str) -> None:
    """A folder and those above it that are missing, for nobody else's eyes; one that is there stays as it is."""
    try:
        private_folders(os.path.abspath(folder))
    except OSError as error:
        kind = OutOfSpace if error.errno in (28, 122) else Unavailable
        raise kind(f"{error.filename} could not be made: {error.strerror or error}") from None


@contextmanager
def _not_open(lock: str) -> Generator[None]:
    """Hold the lease of a session as rho does to remove one; a rho that has it open holds it, too."""
    try:
        fd = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield  # nobody ever had it open
        return
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Conflict(f"rho has this session open ({lock})", hint="close it there, and try again") from None
        yield
    finally:
        os.close(fd)
