"""What lies beside a session of rho: checkpoints of files, pages from the web, what subagents left, and the index."""

from __future__ import annotations

import os
import sqlite3
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterable, Iterator
from typing import Any, cast

from turnlog.formats import OutputFile, Problem, Record
from turnlog.formats._shared.finding import entries_in, is_plain_file
from turnlog.formats._shared.json import decode, lines
from turnlog.formats._shared.rust import compact
from turnlog.formats._shared.sqlite import ERRORS, opened
from turnlog.formats.seeds.rho.message import NAME, Json, RhoTally, origin_of
from turnlog.formats.seeds.rho.record import as_read, line_of, seconds
from turnlog.log.digest import sha256
from turnlog.log.entry import AnyEntry, Note

SESSION = "session.jsonl"
JOURNAL = "workspace-checkpoints/checkpoints.jsonl"
INDEX = "index.sqlite3"
_MAX_FILE = 64 << 20
_MAX_FILES = 5000
_MAX_DEPTH = 8


def beside(path: str, problems: list[Problem]) -> Iterator[Record]:
    """The notes of everything beside a session: the folder it is in, or the `.web` folder of a flat one."""
    folder, name = os.path.split(path)
    if name == SESSION:
        yield from _checkpoints(os.path.join(folder, JOURNAL), problems)
        yield from _files(folder, "", problems)
    else:
        yield from _files(path.removesuffix(".jsonl") + ".web", "web/", problems)


def _checkpoints(path: str, problems: list[Problem]) -> Iterator[Record]:
    if not is_plain_file(path):
        return
    seen: dict[str, int] = {}
    for line in lines(path):
        if line.problem is not None or not line.data.strip():
            problems += [line.problem] if line.problem is not None else []
            continue
        try:
            record = decode(line.data)
        except ValueError:
            problems.append(Problem("a checkpoint that cannot be read", JOURNAL, line.offset, line.length))
            continue
        origin: Json = {"agent": NAME, "is": "checkpoint", **as_read(record, line.data)}
        text, at = _summary(record)
        digest = sha256(line.data).hexdigest()[:24]
        seen[digest] = seen.get(digest, 0) + 1
        note = Note(text=text, data=record, at=at, origin=origin)
        yield Record(entry=note, key=f"checkpoint:{digest}.{seen[digest]}")


def _summary(record: Any) -> tuple[str, Any]:
    """What people see of a checkpoint, and when it was."""
    try:
        inner = record["checkpoint"]
        names = [os.path.basename(str(file["path"])) for file in inner["files"]]
        at = seconds(str(inner["finalized_at"]))
        first = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
    except (KeyError, TypeError):
        return "rho kept files as they were", None
    return f"rho kept {len(names)} file{'s' * (len(names) != 1)} as they were: {first}"[:200], at


def _files(folder: str, prefix: str, problems: list[Problem]) -> Iterator[Record]:
    count = 0
    for path in _walk(folder, problems):
        name = prefix + os.path.relpath(path, folder).replace(os.sep, "/")
        if name in (SESSION, JOURNAL):
            continue
        count += 1
        if count > _MAX_FILES:
            problems.append(Problem(f"more than {_MAX_FILES} files beside it: the rest was not read"))
            return
        try:
            data = _content(path)
        except OSError as error:
            problems.append(Problem(f"cannot be read: {error.strerror or error}", name[:200]))
            continue
        if data is None:
            problems.append(Problem(f"more than {_MAX_FILE} bytes: not read", name[:200]))
            continue
        try:
            name.encode()
            held: Json = {"path": name, "text": data.decode()}
        except UnicodeDecodeError:
            held = {"path": name, "base64": b64encode(data).decode()}
        except UnicodeEncodeError:
            problems.append(Problem("a file name that is not Unicode: not read", ascii(name)[:200]))
            continue
        digest = sha256(name.encode() + b"\0" + data).hexdigest()[:32]
        note = Note(text=f"a file of rho: {name}"[:200], data=held, origin={"agent": NAME, "is": "file"})
        yield Record(entry=note, key=f"file:{digest}")


def _walk(folder: str, problems: list[Problem], depth: int = 0) -> Iterator[str]:
    """Plain files under a folder in a steady order; no links are followed."""
    for entry in entries_in(folder):
        if entry.is_dir(follow_symlinks=False):
            if depth < _MAX_DEPTH:
                yield from _walk(entry.path, problems, depth + 1)
            else:
                problems.append(Problem(f"nested more than {_MAX_DEPTH} folders deep: not read", entry.name[:200]))
        elif entry.is_file(follow_symlinks=False) and not entry.name.endswith((".lock", ".tmp")):
            yield entry.path


def _content(path: str) -> bytes | None:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(fd, "rb") as file:
        data = file.read(_MAX_FILE + 1)
    return data if len(data) <= _MAX_FILE else None


def title_in_index(root: str, key: str, session: str, problems: list[Problem]) -> str | None:
    """The title of a session, which rho keeps in its index only. The index is never written."""
    path = os.path.join(root, INDEX)
    if not is_plain_file(path):
        return None
    try:
        with opened(path, wait_s=0.2) as index:
            if not index.has("sessions", "title", "workspace_key", "id"):
                raise sqlite3.OperationalError("no such table of sessions")
            row = next(index.rows("sessions", "workspace_key = ? and id = ?", (key, session), only=("title",)), None)
        return row[0] if row is not None and isinstance(row[0], str) and row[0] else None
    except (OSError, *ERRORS) as error:
        problems.append(Problem(f"the title cannot be read: {error}", INDEX))
    return None


def sidecars(entries: Iterable[AnyEntry], base: str, ear: RhoTally, *, is_folder: bool) -> list[OutputFile]:
    """The files beside a session, as they were."""
    journal = bytearray()
    files: dict[str, bytes] = {}
    for entry in entries:
        origin = origin_of(entry) or {}
        if not isinstance(entry, Note) or origin.get("is") not in ("checkpoint", "file"):
            continue
        if origin["is"] == "checkpoint":
            journal += (line_of(origin) or compact(entry.data)) + b"\n"
            continue
        held = cast("Json", entry.data)
        try:
            data = held["text"].encode() if "text" in held else b64decode(held["base64"])
            files[_safe(held["path"])] = data
        except (KeyError, TypeError, AttributeError, ValueError, Base64Error):
            ear.add("file beside the session")
    if journal:
        files[JOURNAL] = bytes(journal)
    between = "/" if is_folder else "."
    return [OutputFile(f"{base}{between}{name}", data, 0o600) for name, data in sorted(files.items())]


def _safe(path: str) -> str:
    if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in path.split("/")):
        raise ValueError(path)
    return path
