"""Where a3s keeps what: names of files, the write-ahead log of the newer tree, and what is encrypted."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from turnlog.formats import Problem
from turnlog.formats._shared.json import decoded, lines
from turnlog.formats._shared.rust import compact, fnv1a64
from turnlog.log.digest import sha256

TREE = "v1"
SEALED = b"A3SE"
WAL = "v1/wal/session-store.ndjson"
LOCK = "v1/wal/session-store.lock"
LEASE = "v1/writer_lease.json"
CHECKPOINTS = "loop_checkpoints"
BESIDE = ("artifacts", "traces", "runs", "verification", "subagent_tasks", "workflow_checkpoints")
"""Folders of the tree with one document for each session that has one."""
_SCHEMA = "a3s.code.session-store-wal-entry.v1"
_SNAPSHOT = b"a3s.code.session-store-snapshot.identity.v1"
_ENTRY = b"a3s.code.session-store-wal-entry.identity.v1"
Phase = Literal["intent", "committed"]
_GAPS = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")|[ \t\r\n]+', re.DOTALL)
_LONGEST = 200


class A3sEntry(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One line of the write-ahead log."""

    schema: Literal["a3s.code.session-store-wal-entry.v1"]
    sequence: Annotated[int, Meta(ge=0)]
    session_id: str
    snapshot_digest: str
    phase: Phase
    recorded_at_ms: Annotated[int, Meta(ge=0)]
    entry_digest: str
    """Of all the others."""


def tree_name(id: str) -> str:
    """The file of an id in the tree; one that would be too long for a file gets a digest instead."""
    name = "id_" + base64.urlsafe_b64encode(id.encode("utf-8", "surrogatepass")).decode().rstrip("=")
    if len(name) > _LONGEST:
        name = "id_" + sha256(id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{name}.json"


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
    try:
        is_sound = 0 < len(name.encode()) <= _LONGEST and "\0" not in name
    except UnicodeEncodeError:
        is_sound = False
    if not is_sound:
        name = f"session_{fnv1a64(id.encode('utf-8', 'surrogatepass')):016x}"
    return f"{name}.json"


def new_id(id: str) -> str:
    """The id here of a session from elsewhere: one that shares its file with no other."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", id)[:100]
    return id if plain == id else f"{plain}-{fnv1a64(id.encode('utf-8', 'surrogatepass')):016x}"


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


def wal_line(sequence: int, id: str, digest: str, phase: Phase, at_ms: int) -> bytes:
    """One line of the log, with its own digest."""
    entry = A3sEntry(_SCHEMA, sequence, id, digest, phase, at_ms, "")
    return compact({**msgspec.to_builtins(entry), "entryDigest": _entry_digest(entry)}) + b"\n"


def wal_entries(path: str, problems: list[Problem], only: str | None = None) -> Iterator[A3sEntry]:
    """What the log says, of one session or of all."""
    wanted = None if only is None else compact(only)
    if not os.path.isfile(path):
        return
    for line in lines(path):
        if not line.data.strip() or (wanted is not None and wanted not in line.data):
            continue
        entry = _entry(line.data)
        if entry is None:
            problems.append(Problem("a line of the write-ahead log that is none", WAL, line.offset, line.length))
        elif entry.entry_digest != _entry_digest(entry):
            problems.append(Problem("a line of the write-ahead log with another digest", WAL, line.offset, line.length))
        elif only is None or entry.session_id == only:
            yield entry


def _entry(data: bytes) -> A3sEntry | None:
    try:
        entry = msgspec.convert(decoded(data), A3sEntry)
    except msgspec.ValidationError:
        return None
    return entry if max(entry.sequence, entry.recorded_at_ms) < 1 << 64 else None


def check_wal(path: str, id: str, document: bytes, problems: list[Problem]) -> None:
    """Whether the log and the session it speaks of agree."""
    digest = digest_of(document)
    seen: set[tuple[int, Phase]] = set()
    last: A3sEntry | None = None
    for entry in wal_entries(path, problems, id):
        if (entry.sequence, entry.phase) in seen:
            problems.append(Problem(f"number {entry.sequence} twice in the write-ahead log", WAL))
        seen.add((entry.sequence, entry.phase))
        last = entry
    if last is not None and last.snapshot_digest != digest:
        is_done = last.phase == "committed"
        what = "is not the one that was saved last" if is_done else "is of before a save that never finished"
        problems.append(Problem(f"the session {what}, says the write-ahead log", WAL))
