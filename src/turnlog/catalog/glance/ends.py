"""The first and the last lines of a file, and what they have in common in all agents' files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from json import loads
from typing import Any, NamedTuple, cast

from turnlog.log.prompt import preview_of

_HEAD, _MORE, _TAIL = 64 << 10, 1 << 20, 16 << 10
_TIMES = re.compile(rb'"(?:timestamp|lastUpdated)": ?"([^"\\]{10,40})"')


class SessionGlance(NamedTuple):
    """A session of another agent as far as the two ends of its file tell."""

    native: str
    workspace: str | None = None
    title: str | None = None
    preview: str = ""
    created: int | None = None
    updated: int | None = None
    fork: str | None = None
    parent: str | None = None
    is_hidden: bool = False


class FileEnds:
    """The records of the first lines, which are read as they are asked for, and the last lines as they stand."""

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
        """Those of the first lines; of a first line that is very long, more is read."""
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

    def marked(self, *marks: bytes) -> Iterator[dict[str, Any]]:
        """The records of either end that have one of these in them."""
        for part in (self.head, self.tail) if self.tail is not self.head else (self.head,):
            for start, end in sorted({_line_around(part, at) for mark in marks for at in _places(part, mark)}):
                if record := record_in(part[start:end]):
                    yield record

    def last_time(self) -> int | None:
        """The newest time that the end tells."""
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
    """The object on a line; nothing if there is none."""
    if line[:1] != b"{":
        return {}
    try:
        return fields_in(loads(line))
    except (ValueError, RecursionError):
        return {}


def fields_in(value: object) -> dict[str, Any]:
    """An object, or nothing."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def objects_in(value: object) -> list[dict[str, Any]]:
    """The objects of a list, or none."""
    return [fields_in(item) for item in cast("list[object]", value)] if isinstance(value, list) else []


def text_in(value: object) -> str | None:
    """A text, or nothing."""
    return value if isinstance(value, str) and value else None


def ms_in(value: object) -> int | None:
    """A time in milliseconds since 1970."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return max(0, int((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() * 1000))


def preview_in(content: object) -> str:
    """What a prompt says: a text, or several parts with text."""
    if isinstance(content, list):
        parts = [part.get("text") for part in objects_in(cast("object", content))]
        content = "\n".join(part for part in parts if isinstance(part, str))
    return preview_of(content) if isinstance(content, str) else ""


def stem_of(path: str) -> str:
    """The name of a file without what follows its first dot."""
    return os.path.basename(path).partition(".")[0]
