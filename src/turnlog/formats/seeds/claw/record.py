"""claw's files: their names, and the records in them; whatever is damaged costs only itself."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, cast

from msgspec import Struct

from turnlog.formats import Problem
from turnlog.formats._shared.finding import workspace_over
from turnlog.interop.clawjson import BOM, decode
from turnlog.interop.folder import at_once, head_of
from turnlog.interop.jsonline import JsonLine, document, lines
from turnlog.interop.problem import tell
from turnlog.interop.rust import fnv1a64, fnv1a64_hex
from turnlog.interop.salvage import salvage
from turnlog.interop.value import as_list

PARTITION = re.compile(r"[0-9a-f]{16}")
_COPIES = (
    re.compile(r"(.+)\.(rot-([0-9]{1,18}))\.jsonl", re.DOTALL),
    re.compile(r"(.+)\.jsonl\.(before-clear-([0-9]{1,18}))\.bak", re.DOTALL),
)
_STAMP = re.compile(r"session-([0-9]{9,15})(?:-[0-9]+)?")
SAFE_ID = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}"
"""What ids look like that can be names of files."""


class ClawCopy(Struct, frozen=True):
    """A file that is a former state of a session."""

    original: str
    """The name of the session's own file."""
    at_ms: int
    tag: str


def copy_of(name: str) -> ClawCopy | None:
    """What a file is a copy of, if its name says that it is one."""
    match = next(filter(None, (pattern.fullmatch(name) for pattern in _COPIES)), None)
    return ClawCopy(f"{match[1]}.jsonl", int(match[3]), match[2]) if match else None


def workspace_of(path: str) -> str | None:
    """The folder above `.claw/sessions` (formerly `.claude/sessions`) that a session lies in.

    One of the folders that are named for a workspace may lie in the home of a person, and then is named for another.
    """
    folder, partition = os.path.dirname(os.path.abspath(path)), ""
    if PARTITION.fullmatch(os.path.basename(folder)):
        folder, partition = os.path.split(folder)
    workspace = workspace_over(folder, ".claw", "sessions") or workspace_over(folder, ".claude", "sessions")
    return workspace if workspace is not None and partition in ("", partition_of(workspace)) else None


def partition_of(workspace: str) -> str:
    """The folder for the sessions of a workspace."""
    return f"{fnv1a64(workspace.encode('utf-8', 'surrogateescape')):016x}"


def stamp_of(id: str) -> int | None:
    """The milliseconds in an id; the oldest ones have seconds."""
    match = _STAMP.fullmatch(id)
    if match is None:
        return None
    number = int(match[1])
    return number * 1000 if len(match[1]) < 12 else number


def file_name(id: str) -> str:
    """The file for an id: its own name, or for an id that cannot be one a name that no other id gets."""
    if re.fullmatch(SAFE_ID, id) and copy_of(f"{id}.jsonl") is None:
        return f"{id}.jsonl"
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", id)[:100]
    return f"session_{plain}-{fnv1a64_hex(id)}.jsonl"


_GLANCE = 16 << 10
_TRIES = 8
_META = re.compile(rb'^\s*\{(?=.*"session_meta")(?=.*"session_id")(?!.*"payload")', re.DOTALL)
_MESSAGE = re.compile(
    rb'^\s*\{\s*"(?:message"\s*:\s*\{\s*"(?:blocks|role)"|type"\s*:\s*"message".*"blocks")', re.DOTALL
)
_OBJECT = re.compile(
    rb'^\s*\{.*?"messages"\s*:\s*\[\s*'
    rb'(?:(?=\{\s*"(?:blocks|role|usage)").*?"blocks"\s*:\s*\[|\]\s*,.*?"version"\s*:\s*1\s*\})',
    re.DOTALL,
)
_NAME = re.compile(r"session-[0-9]{9,15}(?:-[0-9]+)?\.jsonl?")
_START = re.compile(rb'\{"(?:message":\{"blocks"|count":|text":|created_at_ms":)')


def is_session(path: str, *, is_trusted: bool) -> bool:
    """Whether a file looks like a session of claw's; in its own folders any of these names is one."""
    head = head_of(path, _GLANCE)
    if head is None:
        return False
    head = head.removeprefix(BOM)
    if not head.strip():
        return is_trusted or bool(_NAME.fullmatch(os.path.basename(path)) and not head)
    first = head.lstrip().partition(b"\n")[0]
    if _META.match(first) or _MESSAGE.match(first) or _OBJECT.match(head):
        return True
    return is_trusted and path.endswith((".jsonl", ".bak"))


class ClawRecord(Struct, frozen=True):
    """One record, and where it is."""

    record: dict[str, Any]
    offset: int | None = None
    length: int | None = None


def report(problems: list[Problem], what: str, at: ClawRecord | JsonLine | None = None, where: str = "") -> None:
    """Add a problem with where it is, up to a number that people can read."""
    offset, length = (None, None) if at is None else (at.offset, at.length)
    tell(problems, Problem(what, where, offset, length), 200, "and more of the same")


def whole_object(path: str, problems: list[Problem]) -> dict[str, Any] | None:
    """The older form, in which the file is one object with all messages in it."""
    with open(path, "rb", opener=at_once) as file:
        head = file.read(_GLANCE).removeprefix(BOM)
    if not _OBJECT.match(head) or _META.match(head.lstrip().partition(b"\n")[0]):
        return None
    data, cut = document(path)
    try:
        value, refused = decode(data)
    except ValueError:
        (value, damage), refused = salvage(data), []
        cut += damage
    problems += cut
    for what in refused:
        report(problems, f"{what}, which claw refuses")
    return cast("dict[str, Any]", value) if isinstance(value, dict) and "messages" in value else None


def records(path: str, whole: dict[str, Any] | None, problems: list[Problem] | None = None) -> Iterator[ClawRecord]:
    """Every record there is. Only the pass over a file that is given a list tells there what is wrong."""
    if whole is not None:
        return of_object(whole)
    return (record for line in lines(path) if (record := of_line(line, problems)) is not None)


def of_object(value: dict[str, Any]) -> Iterator[ClawRecord]:
    """An object file as the lines that claw would make of it."""
    apart = ("messages", "compaction") if isinstance(value.get("compaction"), dict) else ("messages",)
    rest = {key: item for key, item in value.items() if key not in apart}
    yield ClawRecord({**rest, "type": "session_meta"})
    if "compaction" in apart:
        yield ClawRecord({**value["compaction"], "type": "compaction"})
    yield from (ClawRecord({"type": "message", "message": message}) for message in as_list(value.get("messages")))


def of_line(line: JsonLine, problems: list[Problem] | None = None) -> ClawRecord | None:
    """The record on a line, if there is one; what is wrong with it is told where there is a list."""
    problems = [] if problems is None else problems
    if line.problem is not None:
        report(problems, line.problem.what, line)
        return None
    if not line.data.strip(b" \t\r\n"):
        return None
    # A line that was never finished has the next one stuck to its end.
    starts = chain([0], (match.start() for match in islice(_START.finditer(line.data, 1), _TRIES)))
    what = ""
    for start in starts:
        try:
            value, refused = decode(line.data[start:])
        except ValueError as error:
            what = what or f"a line that cannot be read: {error}"
            continue
        if not isinstance(value, dict):
            report(problems, "a line that is not an object", line)
            return None
        for reason in ["the rest of a line that was never finished", *refused] if start else refused:
            report(problems, f"{reason}, which claw refuses", line)
        return ClawRecord(cast("dict[str, Any]", value), line.offset + start, len(line.data) - start)
    report(problems, what if line.is_ended else "the last line was never finished", line)
    return None
