"""The records in claw's files: one to a line, or all in one object; whatever is damaged costs only itself."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, cast

from msgspec import Struct, field

from turnlog.formats import Problem
from turnlog.formats._shared.json import JsonLine, document, lines, salvage
from turnlog.formats._shared.records import head_of, tell
from turnlog.formats._shared.value import listed
from turnlog.formats.seeds.claw.dialect import BOM, decode

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


class ClawFound(Struct, frozen=True):
    """One record, and where it is."""

    record: dict[str, Any]
    offset: int | None = None
    length: int | None = None


class ClawReport(Struct):
    """Problems, up to a number that people can read."""

    problems: list[Problem] = field(default_factory=list[Problem])

    def add(self, what: str, at: ClawFound | JsonLine | None = None, where: str = "") -> None:
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
        value, told = decode(data)
    except ValueError:
        value, problems = salvage(data)
        report.problems += problems
        told = []
    for what in told:
        report.add(f"{what}, which claw refuses")
    return cast("dict[str, Any]", value) if isinstance(value, dict) and "messages" in value else None


def records(path: str, whole: dict[str, Any] | None, report: ClawReport | None = None) -> Iterator[ClawFound]:
    """Every record there is. Only the pass over a file that has a report tells what is wrong."""
    if whole is not None:
        yield from of_object(whole)
        return
    for line in lines(path):
        found, problems = of_line(line)
        for what, at in problems if report is not None else ():
            cast("ClawReport", report).add(what, at)
        if found is not None:
            yield found


def of_object(value: dict[str, Any]) -> Iterator[ClawFound]:
    """An object file as the lines that claw would make of it."""
    rest = {key: item for key, item in value.items() if key not in ("messages", "compaction")}
    yield ClawFound({**rest, "type": "session_meta"})
    if isinstance(value.get("compaction"), dict):
        yield ClawFound({**value["compaction"], "type": "compaction"})
    for message in listed(value.get("messages")):
        yield ClawFound({"type": "message", "message": message})


def of_line(line: JsonLine) -> tuple[ClawFound | None, list[tuple[str, JsonLine]]]:
    """The record on a line, and what is wrong with it."""
    if line.problem is not None:
        return None, [(line.problem.what, line)]
    if not line.data.strip(b" \t\r\n"):
        return None, []
    data, offset = line.data, line.offset
    try:
        value, told = decode(data)
    except ValueError as error:
        # A line that was never finished has the next one stuck to its end.
        for start in [found.start() for found in _START.finditer(data, 1)][:_TRIES]:
            try:
                value, told = decode(data[start:])
            except ValueError:
                continue
            data, offset, told = data[start:], offset + start, ["the rest of a line that was never finished", *told]
            break
        else:
            what = f"a line that cannot be read: {error}" if line.is_ended else "the last line was never finished"
            return None, [(what, line)]
    if not isinstance(value, dict):
        return None, [("a line that is not an object", line)]
    return ClawFound(cast("dict[str, Any]", value), offset, len(data)), [
        (f"{what}, which claw refuses", line) for what in told
    ]
