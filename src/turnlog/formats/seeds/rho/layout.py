"""Where rho keeps its sessions, and what lies beside them: files as they were, web pages, an index of all sessions.

`~/.rho/sessions/<workspace key>/<seconds>_<id>.jsonl`, or a folder of that name with `session.jsonl` in it.
"""

from __future__ import annotations

import os
import re
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any, cast
from uuid import UUID, uuid5

from turnlog.errors import Conflict, Invalid
from turnlog.formats import OutputFile, Places, Problem, Record, Rendered, Source
from turnlog.formats.seeds.rho.logline import differing_line, kept_line, numbered, seconds
from turnlog.formats.seeds.rho.message import NAME, Json, RhoTally, origin_of
from turnlog.interop.folder import entries_in, head_of, is_plain_file, is_plain_folder, plain_files_under
from turnlog.interop.json import decoded
from turnlog.interop.jsonline import document, lines
from turnlog.interop.place import locked, put_files, safe_name
from turnlog.interop.records import record_in, report_unreadable
from turnlog.interop.rust import compact, fnv1a64
from turnlog.interop.sqlite import ERRORS, opened
from turnlog.interop.value import as_list, fields, text
from turnlog.log.codec import without_surrogates
from turnlog.log.digest import sha256
from turnlog.log.entry import AnyEntry, Note

NAMESPACE = UUID("5e0a7c1e-93d4-4b7a-8f60-7e1d5c2b9a34")
"""Of the ids that we choose for rho: the same entry always gets the same one."""
MAX_NAME = 255
_UNIT = re.compile(r"[0-9]{1,20}_([A-Za-z0-9][A-Za-z0-9.-]{0,127})")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,127}")
SESSION = "session.jsonl"
JOURNAL = "workspace-checkpoints/checkpoints.jsonl"
INDEX = "index.sqlite3"
_MAX_FILE = 64 << 20
_MAX_FILES = 5000
_REMAINS = (".lock", ".tmp")
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
    is_home = os.path.basename(os.path.normpath(path)) == ".rho"
    inner = os.path.join(path, "sessions" if is_home else ".rho/sessions")
    if is_plain_folder(inner):
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
    """Lay a session out, unless rho has it open, in the folder of all sessions or in that of its workspace."""
    workspace, unit = (safe_name(name, limit=MAX_NAME) for name in written.files[0].path.split("/")[:2])
    if os.path.basename(os.path.abspath(folder)) == workspace:
        folder = os.path.dirname(os.path.abspath(folder))
    own = os.path.join(folder, workspace)
    with ExitStack() as stack:  # rho holds the lease of a session that it has open, and of one that it removes
        for locked_folder in (own, os.path.join(own, unit)):
            lease = os.path.join(locked_folder, f".{written.id}.active.lock")
            busy = Conflict(f"rho has this session open ({lease})", hint="close it there, and try again")
            stack.enter_context(locked(lease, busy, create=False))
        return put_files(written.files, folder, force=force)[0]


def workspace_key(cwd: str) -> str:
    """The folder for the sessions of a workspace. For a deep one rho's own is longer than a file system takes."""
    plain = "".join(char if char.isascii() and char.isalnum() else "-" for char in cwd)
    tail = f"-{fnv1a64(str(without_surrogates(cwd)).encode()):016x}"
    return plain[: MAX_NAME - len(tail)] + tail


def chosen_id(name: str) -> str:
    """The id that something of ours has in rho."""
    return str(uuid5(NAMESPACE, name))


def is_safe(id: Any) -> bool:
    """Whether an id can be part of a file name as it is."""
    return isinstance(id, str) and _ID.fullmatch(id) is not None


def id_in(unit: str) -> str | None:
    """The session's id in the name of its file or folder."""
    match = _UNIT.fullmatch(unit)
    return match[1] if match is not None else None


def unit_name(kept: Any, seconds: str, session: str) -> str:
    """The name of a session's file or folder: the one it had, or the one rho would give it."""
    if isinstance(kept, str) and id_in(kept) == session:
        return kept
    return f"{seconds if seconds.isascii() and seconds.isdigit() and len(seconds) <= 20 else 0}_{session}"


def beside(path: str, problems: list[Problem]) -> Iterator[Record]:
    """The notes of everything beside a session: the folder it is in, or the `.web` folder of a flat one."""
    folder, name = os.path.split(path)
    if name == SESSION:
        journal = os.path.join(folder, JOURNAL)
        yield from report_unreadable(_checkpoints(journal, problems), problems, journal)
        yield from _files(folder, "", problems)
    else:
        yield from _files(path.removesuffix(".jsonl") + ".web", "web/", problems)


def _checkpoints(path: str, problems: list[Problem]) -> Iterator[Record]:
    if not is_plain_file(path):
        return
    seen = Counter[str]()
    for line in lines(path):
        if line.problem is not None:
            problems.append(line.problem)
        if not line.data.strip():
            continue
        record = decoded(line.data)
        if record is None:
            problems.append(Problem("a checkpoint that cannot be read", JOURNAL, line.offset, line.length))
            continue
        origin: Json = {"agent": NAME, "is": "checkpoint", **differing_line(record, line.data)}
        words, at = _summary(record)
        note = Note(text=words, data=record, at=at, origin=origin)
        yield Record(entry=note, key=f"checkpoint:{numbered(line.data, seen)}")


def _summary(record: Any) -> tuple[str, Any]:
    """What people see of a checkpoint, and when it was."""
    inner = fields(fields(record).get("checkpoint"))
    names = [os.path.basename(str(fields(file).get("path"))) for file in as_list(inner.get("files"))]
    first = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
    words = f"rho kept {len(names)} file{'s' * (len(names) != 1)} as they were: {first}"
    return words[:200], seconds(str(inner.get("finalized_at")))


def _files(folder: str, prefix: str, problems: list[Problem]) -> Iterator[Record]:
    named = ((prefix + os.path.relpath(path, folder), path) for path in plain_files_under(folder, problems))
    others = ((name, path) for name, path in named if name not in (SESSION, JOURNAL) and not path.endswith(_REMAINS))
    for number, (name, path) in enumerate(others):
        if number == _MAX_FILES:
            problems.append(Problem(f"more than {_MAX_FILES} files beside it: the rest was not read"))
            return
        try:
            encoded = name.encode()
            data, cut = document(path, limit=_MAX_FILE)
        except UnicodeEncodeError:
            problems.append(Problem("a file name that is not Unicode: not read", ascii(name)[:200]))
            continue
        except OSError as error:
            problems.append(Problem(f"cannot be read: {error.strerror or error}", name[:200]))
            continue
        if cut:
            problems.append(Problem(f"more than {_MAX_FILE} bytes: not read", name[:200]))
            continue
        try:
            held: Json = {"path": name, "text": data.decode()}
        except UnicodeDecodeError:
            held = {"path": name, "base64": b64encode(data).decode()}
        digest = sha256(encoded + b"\0" + data).hexdigest()[:32]
        note = Note(text=f"a file of rho: {name}"[:200], data=held, origin={"agent": NAME, "is": "file"})
        yield Record(entry=note, key=f"file:{digest}")


def title_in_index(root: str, key: str, session: str, problems: list[Problem]) -> str | None:
    """The title of a session, which rho keeps in its index only. The index is never written."""
    path = os.path.join(root, INDEX)
    if not is_plain_file(path):
        return None
    try:
        with opened(path, wait_s=0.2) as index:
            row = index.row("sessions", "workspace_key = ? and id = ?", (key, session), only=("title",))
            return text(row.get("title"))
    except (OSError, *ERRORS) as error:
        problems.append(Problem(f"the title cannot be read: {error}", INDEX))
        return None


def sidecars(entries: Iterable[AnyEntry], base: str, tally: RhoTally, *, is_folder: bool) -> list[OutputFile]:
    """The files beside a session, as they were."""
    journal = bytearray()
    files: dict[str, bytes] = {}
    for entry in entries:
        origin = origin_of(entry) or {}
        if isinstance(entry, Note) and origin.get("is") == "checkpoint":
            journal += (kept_line(origin) or compact(entry.data)) + b"\n"
        elif isinstance(entry, Note) and origin.get("is") == "file":
            held = cast("Json", entry.data)
            try:
                data = held["text"].encode() if "text" in held else b64decode(held["base64"])
                files["/".join(map(safe_name, held["path"].split("/")))] = data
            except (KeyError, TypeError, AttributeError, ValueError, Invalid):
                tally.add("file beside the session")
    if journal:
        files[JOURNAL] = bytes(journal)
    between = "/" if is_folder else "."
    return [OutputFile(f"{base}{between}{name}", data, 0o600) for name, data in sorted(files.items())]
