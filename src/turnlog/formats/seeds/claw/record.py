"""claw's files: their names, and the records in them; whatever is damaged costs only itself."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, cast

from msgspec import Struct, field

from turnlog.formats import Problem
from turnlog.formats._shared.finding import head_of
from turnlog.formats._shared.json import JsonLine, document, lines, salvage
from turnlog.formats._shared.problem import tell
from turnlog.formats._shared.rust import fnv1a64
from turnlog.formats._shared.value import listed
from turnlog.formats.seeds.claw.dialect import BOM, decode

PARTITION = re.compile(r"[0-9a-f]{16}")
_ROTATED = re.compile(r"(?P<stem>.+)\.rot-(?P<at>[0-9]{1,18})\.jsonl", re.DOTALL)
_CLEARED = re.compile(r"(?P<stem>.+)\.jsonl\.before-clear-(?P<at>[0-9]{1,18})\.bak", re.DOTALL)
_STAMP = re.compile(r"session-([0-9]{9,15})(?:-[0-9]+)?")
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")


class ClawCopy(Struct, frozen=True):
    """A file that is a former state of a session."""

    original: str
    """The name of the session's own file."""
    at_ms: int
    tag: str


def copy_of(name: str) -> ClawCopy | None:
    """What a file is a copy of, if its name says that it is one."""
    for pattern, word in ((_ROTATED, "rot"), (_CLEARED, "before-clear")):
        match = pattern.fullmatch(name)
        if match:
            return ClawCopy(f"{match['stem']}.jsonl", int(match["at"]), f"{word}-{match['at']}")
    return None


def is_session_name(name: str) -> bool:
    """Whether claw could mean a session by that name: no copy, no temporary file."""
    return name.endswith((".jsonl", ".json")) and not name.startswith(".") and copy_of(name) is None


def stem_of(name: str) -> str:
    """The name without what the kind of file adds to it: what claw looks up."""
    copy = copy_of(name)
    name = copy.original if copy is not None else name
    for ending in (".jsonl", ".json"):
        if name.endswith(ending):
            return name[: -len(ending)]
    return name


def workspace_of(path: str) -> str | None:
    """The folder above `.claw/sessions` (formerly `.claude/sessions`) that a session lies in.

    One of the folders that are named for a workspace may lie in the home of a person, and then is named for another.
    """
    folder = os.path.dirname(os.path.abspath(path))
    named = os.path.basename(folder) if PARTITION.fullmatch(os.path.basename(folder)) else None
    outer, name = os.path.split(os.path.dirname(folder) if named else folder)
    if name != "sessions" or os.path.basename(outer) not in (".claw", ".claude"):
        return None
    workspace = os.path.dirname(outer)
    return workspace if named in (None, partition_of(workspace)) else None


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
    if _SAFE.fullmatch(id) and copy_of(f"{id}.jsonl") is None:
        return f"{id}.jsonl"
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", id)[:100]
    return f"session_{plain}-{fnv1a64(id.encode('utf-8', 'surrogatepass')):016x}.jsonl"


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


class ClawReport(Struct):
    """Problems, up to a number that people can read."""

    problems: list[Problem] = field(default_factory=list[Problem])

    def add(self, what: str, at: ClawRecord | JsonLine | None = None, where: str = "") -> None:
        """One more, with where it is."""
        offset, length = (None, None) if at is None else (at.offset, at.length)
        tell(self.problems, Problem(what, where, offset, length), 200, "and more of the same")


def whole_object(path: str, report: ClawReport) -> dict[str, Any] | None:
    """The older form, in which the file is one object with all messages in it."""
    with open(path, "rb") as file:
        head = file.read(_GLANCE).removeprefix(BOM)
    if not _OBJECT.match(head) or _META.match(head.lstrip().partition(b"\n")[0]):
        return None
    data, problems = document(path)
    report.problems += problems
    try:
        value, refused = decode(data)
    except ValueError:
        value, problems = salvage(data)
        report.problems += problems
        refused = []
    for what in refused:
        report.add(f"{what}, which claw refuses")
    return cast("dict[str, Any]", value) if isinstance(value, dict) and "messages" in value else None


def records(path: str, whole: dict[str, Any] | None, report: ClawReport | None = None) -> Iterator[ClawRecord]:
    """Every record there is. Only the pass over a file that has a report tells what is wrong."""
    if whole is not None:
        yield from of_object(whole)
        return
    for line in lines(path):
        record, problems = of_line(line)
        for what, at in problems if report is not None else ():
            cast("ClawReport", report).add(what, at)
        if record is not None:
            yield record


def of_object(value: dict[str, Any]) -> Iterator[ClawRecord]:
    """An object file as the lines that claw would make of it."""
    rest = {key: item for key, item in value.items() if key not in ("messages", "compaction")}
    yield ClawRecord({**rest, "type": "session_meta"})
    if isinstance(value.get("compaction"), dict):
        yield ClawRecord({**value["compaction"], "type": "compaction"})
    for message in listed(value.get("messages")):
        yield ClawRecord({"type": "message", "message": message})


def of_line(line: JsonLine) -> tuple[ClawRecord | None, list[tuple[str, JsonLine]]]:
    """The record on a line, and what is wrong with it."""
    if line.problem is not None:
        return None, [(line.problem.what, line)]
    if not line.data.strip(b" \t\r\n"):
        return None, []
    data, offset = line.data, line.offset
    try:
        value, refused = decode(data)
    except ValueError as error:
        # A line that was never finished has the next one stuck to its end.
        for start in [match.start() for match in _START.finditer(data, 1)][:_TRIES]:
            try:
                value, refused = decode(data[start:])
            except ValueError:
                continue
            data, offset, refused = (
                data[start:],
                offset + start,
                ["the rest of a line that was never finished", *refused],
            )
            break
        else:
            what = f"a line that cannot be read: {error}" if line.is_ended else "the last line was never finished"
            return None, [(what, line)]
    if not isinstance(value, dict):
        return None, [("a line that is not an object", line)]
    return ClawRecord(cast("dict[str, Any]", value), offset, len(data)), [
        (f"{what}, which claw refuses", line) for what in refused
    ]
