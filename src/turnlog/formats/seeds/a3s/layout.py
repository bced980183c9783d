"""Where a3s keeps what: names of files, the write-ahead log of the newer tree, how sessions are found and put there."""

from __future__ import annotations

import base64
import os
import re
import time
from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from turnlog.errors import AlreadyExists, Corrupt, Unavailable
from turnlog.formats import Places, Problem, Rendered, Source
from turnlog.formats.seeds.a3s.schema import NAME
from turnlog.interop.folder import head_of, is_plain_file, names_in
from turnlog.interop.json import decoded
from turnlog.interop.jsonline import lines
from turnlog.interop.place import Taken, appending, locked, put_files
from turnlog.interop.records import report_unreadable
from turnlog.interop.rust import compact, fnv1a64_hex
from turnlog.interop.value import fields
from turnlog.log.codec import without_surrogates
from turnlog.log.digest import sha256

TREE = "v1"
SEALED = b"A3SE"
WAL = "v1/wal/session-store.ndjson"
LOCK = "v1/wal/session-store.lock"
LEASE = "v1/writer_lease.json"
CHECKPOINTS = "loop_checkpoints"
BESIDE = ("artifacts", "traces", "runs", "verification", "subagent_tasks", "workflow_checkpoints")
"""Folders of the tree with one document for each session that has one."""
_SNAPSHOT = b"a3s.code.session-store-snapshot.identity.v1"
_ENTRY = b"a3s.code.session-store-wal-entry.identity.v1"
Phase = Literal["intent", "committed"]
_GAPS = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")|[ \t\r\n]+', re.DOTALL)
_LONGEST = 200
_GLANCE = 16 << 10
_SMALL = _GLANCE + (4 << 20)
_FLAT = re.compile(rb'^\s*\{\s*"id"\s*:\s*"(?:[^"\\]|\\.)*"\s*,\s*"(?:config"|[a-z_]*$)', re.DOTALL)
_SNAPSHOT_HEAD = re.compile(rb'^\s*\{\s*"schema_version"\s*:\s*[0-9]+\s*,\s*"session"\s*:')
_ID = re.compile(rb'"id"\s*:\s*("(?:[^"\\]|\\.)*")', re.DOTALL)


class A3sEntry(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One line of the write-ahead log."""

    schema: Literal["a3s.code.session-store-wal-entry.v1"]
    sequence: Annotated[int, Meta(ge=0)]
    session_id: str
    snapshot_digest: str
    phase: Phase
    recorded_at_ms: Annotated[int, Meta(ge=0)]
    entry_digest: str
    """The digest of all other fields."""


def tree_name(id: str) -> str:
    """The file of an id in the tree; one that would be too long for a file gets a digest instead."""
    data = id.encode("utf-8", "surrogatepass")
    name = "id_" + base64.urlsafe_b64encode(data).decode().rstrip("=")
    return f"{name if len(name) <= _LONGEST else f'id_{sha256(data).hexdigest()}'}.json"


def id_in(name: str) -> str | None:
    """The id that a name in the tree stands for."""
    text = name.removesuffix(".json").removeprefix("id_")
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except ValueError:
        return None


def flat_name(id: str) -> str:
    """The file a3s looks for when it is asked for an id; several ids share one, so whose it is has to be looked up."""
    name = id.replace("/", "_").replace("\\", "_").replace("..", "_")
    is_text = "\0" not in name and without_surrogates(name) == name
    return f"{name if is_text and 0 < len(name.encode()) <= _LONGEST else f'session_{fnv1a64_hex(id)}'}.json"


def new_id(id: str) -> str:
    """The id that a session of another agent gets: one that shares its file with no other."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", id)[:100]
    return id if plain == id else f"{plain}-{fnv1a64_hex(id)}"


def beside_name(kind: str, id: str) -> str:
    """Where the document of that kind lies that belongs to a session."""
    name = tree_name(id)
    return f"{TREE}/{kind}/{name.removesuffix('.json')}/{kind}.json" if kind == "artifacts" else f"{TREE}/{kind}/{name}"


def digest_of(document: bytes) -> str:
    """The digest of a snapshot: of its JSON without the spaces between."""
    return _digest(_SNAPSHOT, _GAPS.sub(rb"\1", document))


def _digest(domain: bytes, text: bytes) -> str:
    return "sha256:" + sha256(domain + b"\0" + text).hexdigest()


def _entry_digest(entry: A3sEntry) -> str:
    record = msgspec.structs.asdict(entry)
    del record["entry_digest"]
    return _digest(_ENTRY, compact(record))


def _wal_line(sequence: int, id: str, digest: str, phase: Phase) -> bytes:
    """One line of the log, with its own digest."""
    at_ms = time.time_ns() // 1_000_000
    entry = A3sEntry("a3s.code.session-store-wal-entry.v1", sequence, id, digest, phase, at_ms, "")
    return compact({**msgspec.to_builtins(entry), "entryDigest": _entry_digest(entry)}) + b"\n"


def wal_entries(path: str, problems: list[Problem], only: str | None = None) -> Iterator[A3sEntry]:
    """What the log says, of one session or of all."""
    wanted = None if only is None else compact(only)
    if not os.path.isfile(path):
        return
    for line in lines(path):
        if not line.data.strip() or (wanted is not None and wanted not in line.data):
            continue
        try:
            entry = msgspec.convert(decoded(line.data), A3sEntry)
        except msgspec.ValidationError:
            entry = None
        if entry is None or max(entry.sequence, entry.recorded_at_ms) >= 1 << 64:
            problems.append(Problem("a line of the write-ahead log that is none", WAL, line.offset, line.length))
        elif entry.entry_digest != _entry_digest(entry):
            problems.append(Problem("a line of the write-ahead log with another digest", WAL, line.offset, line.length))
        elif only is None or entry.session_id == only:
            yield entry


def check_wal(path: str, id: str, document: bytes, problems: list[Problem]) -> None:
    """Whether the log and the session it speaks of agree."""
    seen: set[tuple[int, Phase]] = set()
    entry = None
    for entry in report_unreadable(wal_entries(path, problems, id), problems, path):
        if (entry.sequence, entry.phase) in seen:
            problems.append(Problem(f"number {entry.sequence} twice in the write-ahead log", WAL))
        seen.add((entry.sequence, entry.phase))
    if entry is not None and entry.snapshot_digest != digest_of(document):
        is_done = entry.phase == "committed"
        what = "is not the one that was saved last" if is_done else "is of before a save that never finished"
        problems.append(Problem(f"the session {what}, says the write-ahead log", WAL))


def is_session(path: str) -> bool:
    """Whether a file looks like a session of a3s: whole or cut off, sealed or not."""
    head = head_of(path, _GLANCE) or b""
    if head.startswith(SEALED) or _FLAT.match(head) or _SNAPSHOT_HEAD.match(head):
        return True
    data = head_of(path, _SMALL) if head.lstrip().startswith(b"{") else None
    record = fields(decoded(data)) if data and b'"config"' in data else {}
    record = fields(record.get("session")) or record
    return isinstance(record.get("config"), dict) and {"id", "messages", "context_usage"} <= set(record)


def id_at(path: str) -> str | None:
    """The id of the session in a file, from its first bytes."""
    match = _ID.search(head_of(path, _GLANCE) or b"")
    value = decoded(match[1]) if match else None
    return value if isinstance(value, str) else None


def homes(places: Places) -> list[str]:
    """Where its examples and its settings put them: a3s itself has no fixed place."""
    above = [folder for folder in (places.workspace, places.home) if folder is not None]
    return list(dict.fromkeys(os.path.join(folder, ".a3s", "sessions") for folder in above))


def find(path: str) -> Iterator[Source]:
    """The session in a file; those of a folder, of its tree, and of the `.a3s/sessions` in it."""
    if os.path.isfile(path):
        if path.endswith(".json") and is_session(path):
            yield Source(NAME, path)
        return
    inner = (os.path.join(path, name) for name in ("sessions", ".a3s/sessions"))
    for folder in (path, *(folder for folder in inner if not os.path.islink(folder))):
        yield from _in_folder(folder)


def _in_folder(folder: str) -> Iterator[Source]:
    tree = os.path.join(folder, TREE, "sessions")
    moved = dict.fromkeys(names_in(tree, ".json") if not os.path.islink(os.path.join(folder, TREE)) else ())
    for path in (os.path.join(tree, name) for name in moved):
        if is_plain_file(path) and is_session(path):
            yield Source(NAME, path)
    for path in (os.path.join(folder, name) for name in names_in(folder, ".json")):
        # What was moved to the tree stays behind as it was.
        if is_plain_file(path) and is_session(path) and tree_name(id_at(path) or "") not in moved:
            yield Source(NAME, path)


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
        held = decoded(head_of(lease))
        holder = "somebody" if held is None else str(fields(held).get("holderId"))
        raise Unavailable(f"{folder} is leased to {holder!r:.80}", hint="stop that a3s first, then use --force")
    lock = os.path.join(folder, LOCK)
    with locked(lock, Unavailable(f"a3s is saving: {lock} is locked", hint="try again")):
        problems: list[Problem] = []
        entries = report_unreadable(wal_entries(log, problems), problems, log)
        number = max((entry.sequence for entry in entries), default=0) + 1
        if problems:
            raise Corrupt(f"{log} is damaged: {problems[0].what}", hint="start a3s once, so that it mends its log")
        for path in (os.path.join(folder, file.path) for file in written.files):
            if os.path.lexists(path) and not force:
                raise Taken(path)
        digest = digest_of(written.files[0].data)
        with appending(log) as append:
            append(_wal_line(number, written.id, digest, "intent"))
            path = put_files(written.files, folder, force=force)[0]
            append(_wal_line(number, written.id, digest, "committed"))
        return path
