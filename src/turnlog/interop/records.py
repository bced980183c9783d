"""JSON lines of other agents, record by record: a damaged record costs only itself, and is reported."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Annotated, Any, TypeVar, cast

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from turnlog.interop.folder import at_once
from turnlog.interop.json import decode
from turnlog.interop.jsonline import MAX_LINE, document, lines
from turnlog.interop.problem import Problem, report, tell
from turnlog.interop.value import fields, items
from turnlog.log.startup import pattern

_CHUNK = 1 << 17
"""As much as stays near the processor until it is decoded."""
Moment = Annotated[datetime, Meta(tz=True)]
"""A time as most programs write it, for types; others are left to `moment`."""
Tokens = Annotated[int, Meta(ge=0, lt=1 << 53)]
"""A number of tokens, for types; what is none is left to `count`."""
_FIRST_KEYS = ("type", "uuid", "parentUuid", "timestamp", "id")
_OBJECT = pattern(rb'\{\s*"')
_MOST = MAX_LINE + 1
_T = TypeVar("_T")


class RawRecord(Struct, gc=False):
    """One record, and the offset of its line."""

    offset: int
    data: dict[str, Any]


def rows(path: str, problems: list[Problem], *, marks: tuple[str, ...] = ("type",)) -> Iterator[RawRecord]:
    """The records of a file. In a damaged line, whole objects that have one of the `marks` are still found."""
    return (RawRecord(offset, data) for offset, data in typed_records(path, problems, marks=marks))


def typed_records(
    path: str,
    problems: list[Problem],
    decode_line: Callable[[bytes], Any] | None = None,
    *,
    marks: tuple[str, ...] = ("type",),
    start: int = 0,
) -> Iterator[tuple[int, Any]]:
    """The offset of each record, and what `decode_line` makes of it: a dict without it, and for a line that it refuses.

    Bytes that are not UTF-8 damage a line only in fields that are decoded.
    """
    decode_line = decode_line or _decode
    if not path.endswith(".zst"):
        with open(path, "rb", buffering=_CHUNK, opener=at_once) as file:
            read = file.readline
            file.seek(start)
            while data := read(_MOST):
                try:
                    value = decode_line(data)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    if len(data) == _MOST and data[-1:] != b"\n":
                        break
                    yield from _refused_line(data, start, problems, marks, is_ended=data[-1:] == b"\n")
                else:
                    yield start, value
                start += len(data)
            else:
                return
    for line in lines(path, start=start):
        if line.problem is not None:
            tell(problems, line.problem)
        else:
            yield from _refused_line(line.data, line.offset, problems, marks)


_decode = msgspec.json.Decoder(dict[str, Any]).decode
"""Without a look at how deep it goes: what is too deep for the log costs itself there."""


def _refused_line(
    data: bytes, offset: int, problems: list[Problem], marks: tuple[str, ...], *, is_ended: bool = True
) -> Iterator[tuple[int, Any]]:
    """The records in a line that the decoder refused: it is empty, damaged, or unusual."""
    data = data.removesuffix(b"\n")
    if not data.strip():
        return
    try:
        value = decode(data)
    except ValueError:
        if not is_ended and _is_half_written(data):
            tell(problems, Problem("a damaged line", offset=offset, length=len(data)))
            return
        yield from _in_damaged(data, offset, problems, marks)
        return
    if isinstance(value, dict):
        yield offset, value
    else:
        tell(problems, Problem("a line that is no record", offset=offset, length=len(data)))


_UNFINISHED = pattern(
    rb'\s*+,?\s*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"\s*+:?\s*+)?(?:"[^"\\]*+(?:\\.[^"\\]*+)*+\\?|[\w.+-]*+)', re.DOTALL
)
"""What may follow the last complete value: a key, and the beginning of a value."""


def _is_half_written(data: bytes) -> bool:
    """Whether a last line is the beginning of one record: the objects in it are parts of that, and no records."""
    from turnlog.interop.salvage import salvage

    value, damage = salvage(data)
    if not isinstance(value, dict) or [problem.what for problem in damage] != ["the JSON breaks off"]:
        return False
    return _UNFINISHED.fullmatch(data, damage[0].offset or 0) is not None


def _in_damaged(data: bytes, offset: int, problems: list[Problem], marks: tuple[str, ...]) -> Iterator[tuple[int, Any]]:
    """The records in a torn line, or in two lines that were written into each other."""
    readable = 0
    for start, value in whole_objects(data, marks):
        if any(mark in value for mark in marks):
            readable += 1
            yield offset + start, value
    what = "NUL bytes" if not data.strip(b"\0 \r\t") else "a damaged line"
    kept = f", in which {readable} record{'s' * (readable != 1)} could be read" if readable else ""
    tell(problems, Problem(what + kept, offset=offset, length=len(data)))


def whole_objects(data: bytes, marks: tuple[str, ...] = ()) -> Iterator[tuple[int, dict[str, Any]]]:
    """Objects that are complete somewhere in damaged bytes, with where they begin. Looks at each byte a few times.

    After a torn object, the next one is looked for where it follows a brace, or begins with a usual key or a mark.
    """
    next_record = _record_begin(marks)
    at, tries = 0, 0
    while (match := _OBJECT.search(data, at)) is not None and tries < 200:
        start = match.start()
        end = _end_of_object(data, start)
        value = None
        if end > start:
            try:
                value = decode(data[start:end])
            except ValueError:
                value = None
        if isinstance(value, dict):
            yield start, cast("dict[str, Any]", value)
            at = end
        else:
            tries += 1
            at = start + 1
            # The next one that can be whole begins a record: a brace in the middle of a torn one is none.
            begin = next_record.search(data, at)
            if begin is None:
                return
            at = begin.start()


@cache
def _record_begin(marks: tuple[str, ...]) -> re.Pattern[bytes]:
    """Where a record may begin: behind the end of another one, or with a usual first key or one of the marks."""
    keys = "|".join(map(re.escape, (*_FIRST_KEYS, *marks)))
    return re.compile(rf'(?<=\}})\{{|\{{\s*"(?:{keys})"'.encode())


_TOKENS = pattern(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}]', re.DOTALL)


def _end_of_object(data: bytes, start: int) -> int:
    """Where the object that begins there ends; -1 if it does not."""
    depth = 0
    for token in _TOKENS.finditer(data, start):
        head = token[0][:1]
        if head == b"{":
            depth += 1
        elif head == b"}":
            depth -= 1
            if depth == 0:
                return token.end()
    return -1


def objects_in(value: Any, what: str, problems: list[Problem], *, offset: int | None = None) -> list[dict[str, Any]]:
    """The objects in a list; that there was anything else is reported, `what` names the list."""
    objects = items(value)
    if value is not None and (type(value) is not list or len(objects) < len(value)):  # pyright: ignore[reportUnknownArgumentType]
        report(problems, f"{what} that are no list of objects: only the objects were read", offset=offset)
    return objects


def record_at(path: str, offset: int) -> dict[str, Any]:
    """The record that begins there, once more; empty if it lies in a damaged line."""
    with open(path, "rb", opener=at_once) as file:
        file.seek(offset)
        return record_in(file.readline())


def record_in(line: bytes) -> dict[str, Any]:
    """The record in a line; empty if the line is damaged."""
    try:
        return fields(decode(line))
    except ValueError:
        return {}


def load_document(path: str, problems: list[Problem], where: str = "") -> Any:
    """The value of a document, as far as it can be read; what is wrong is told of the file that `where` names."""
    from turnlog.interop.salvage import salvage  # most are lines, and these are whole

    data, cut = document(path)
    value, damage = salvage(data)
    for problem in [*cut, *damage]:
        tell(problems, replace(problem, where=where))
    return value


def load_sidecar(path: str, problems: list[Problem], where: str = "") -> Any:
    """The value of a document beside a session; None where there is none. One that cannot be opened is told."""
    where = where or os.path.basename(path)
    try:
        return load_document(path, problems, where)
    except FileNotFoundError:
        return None
    except OSError as error:
        report(problems, f"cannot be opened: {error.strerror or error}", where=where)
        return None


def report_unreadable(records: Iterator[_T], problems: list[Problem], path: str) -> Iterator[_T]:
    """What comes of another file than the session's own: one that cannot be opened is told, and costs no more."""
    try:
        yield from records
    except OSError as error:
        report(problems, f"cannot be opened: {error.strerror or error}", where=os.path.basename(path))


def read_beside(records: Callable[[list[Problem]], Iterator[_T]], problems: list[Problem], path: str) -> Iterator[_T]:
    """What comes of another file than the session's own: whatever is wrong with it is told with its name."""
    damage: list[Problem] = []
    yield from report_unreadable(records(damage), problems, path)
    for problem in damage:
        tell(problems, replace(problem, where=f"{os.path.basename(path)} {problem.where}".strip()))


def first_records(path: str, most: int) -> Iterator[dict[str, Any]]:
    """The first records of a file, to tell whose it is; none of one that cannot be opened."""
    try:
        yield from (record_in(line.data) for line in islice(lines(path, limit=64 << 20), most))
    except (OSError, EOFError):
        return
