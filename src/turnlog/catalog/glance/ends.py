"""The first and the last lines of a file, and how to read what all agents write into them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import datetime
from json import loads
from typing import Any, cast

from turnlog.catalog.index.columns import ms_of
from turnlog.log.prompt import preview_of
from turnlog.log.startup import NamedTuple

_HEAD, _MORE, _TAIL = 64 << 10, 1 << 20, 16 << 10
_TIMES = re.compile(rb'"(?:timestamp|lastUpdated)": ?"([^"\\]{10,40})"')


class SessionGlance(NamedTuple):
    """What the two ends of a file show of another agent's session."""

    native: str
    workspace: str | None = None
    title: str | None = None
    preview: str = ""
    created_ms: int | None = None
    updated_ms: int | None = None
    fork: str | None = None
    parent: str | None = None
    is_hidden: bool = False


class FileEnds:
    """The two ends of a file; records of the first lines are parsed on demand."""

    def __init__(self, path: str, size: int) -> None:
        self._path = path
        self._size = size
        with open(path, "rb", buffering=0) as file:
            self.head = file.read(_HEAD)
            self.tail = self.head
            if size > _HEAD:
                file.seek(max(_HEAD, size - _TAIL))
                self.tail = file.read(_TAIL).partition(b"\n")[2] if size > _HEAD + _TAIL else file.read(_TAIL)

    def records(self) -> Iterator[dict[str, Any]]:
        """The records of the first lines; if the first line is very long, more is read."""
        head = self.head
        if b"\n" not in head and self._size > len(head):
            with open(self._path, "rb", buffering=0) as file:
                head = file.read(_MORE)
        end = len(head) if len(head) >= self._size else head.rfind(b"\n")
        start = 0
        while start < end:
            stop = head.find(b"\n", start, end)
            stop = stop if stop >= 0 else end
            if record := record_in(head[start:stop]):
                yield record
            start = stop + 1

    def records_with(self, *marks: bytes) -> Iterator[dict[str, Any]]:
        """The records of both ends that contain one of these marks."""
        for part in (self.head, self.tail) if self.tail is not self.head else (self.head,):
            for start, end in sorted({_line_around(part, at) for mark in marks for at in _places(part, mark)}):
                if record := record_in(part[start:end]):
                    yield record

    def last_time(self) -> int | None:
        """The newest time in the last lines."""
        return max(filter(None, (ms_in(stamp.decode()) for stamp in _TIMES.findall(self.tail)[-8:])), default=None)


def _places(part: bytes, mark: bytes) -> Iterator[int]:
    at = part.find(mark)
    while at >= 0:
        yield at
        at = part.find(mark, at + 1)


def _line_around(part: bytes, at: int) -> tuple[int, int]:
    end = part.find(b"\n", at)
    return part.rfind(b"\n", 0, at) + 1, end if end >= 0 else len(part)


def record_in(line: bytes) -> dict[str, Any]:
    """The JSON object on a line; empty if there is none."""
    if line[:1] != b"{":
        return {}
    try:
        return fields_in(loads(line))
    except (ValueError, RecursionError):
        return {}


def fields_in(value: object) -> dict[str, Any]:
    """The value if it is an object; else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def objects_in(value: object) -> list[dict[str, Any]]:
    """The objects of a list; empty if the value is none."""
    return [fields_in(item) for item in cast("list[object]", value)] if isinstance(value, list) else []


def text_in(value: object) -> str | None:
    """The value if it is a text that is not empty; else None."""
    return value if isinstance(value, str) and value else None


def ms_in(value: object) -> int | None:
    """A time in ISO 8601 as milliseconds since 1970; None if it is none."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return ms_of(at)


def preview_in(content: object) -> str:
    """The preview of a prompt, which is a text or several parts with text."""
    if isinstance(content, list):
        parts = [part.get("text") for part in objects_in(cast("object", content))]
        content = "\n".join(part for part in parts if isinstance(part, str))
    return preview_of(content) if isinstance(content, str) else ""


def stem_of(path: str) -> str:
    """The name of a file without what follows its first dot."""
    return os.path.basename(path).partition(".")[0]
