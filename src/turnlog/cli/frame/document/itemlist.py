"""Documents that are about a list: an item on a line, as many as `--max-bytes` has room for, and where it goes on.

`left_out` says how many of those that were asked for had no room; `cursor` is what `--cursor` takes to go on behind
the last one, and null at the end, or where the command did something and asking again would do it again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol
from zlib import crc32

from turnlog.cli.frame.document.encoding import encode_json
from turnlog.cli.frame.document.escaping import safe_json
from turnlog.cli.frame.document.jsonline import write_line
from turnlog.cli.frame.document.request import JsonRequest
from turnlog.cli.frame.document.selection import project
from turnlog.cli.frame.document.shape import bare
from turnlog.cli.frame.exitcode import UsageError

_LARGEST = 2**63 - 1
"""The largest number in a cursor, because it is that of a database."""


class DocumentItems(Protocol):
    """The list that a document is about, as it is printed."""

    items: Iterable[Any]
    """Values, or JSON as bytes."""

    def cursor(self, shown: int) -> str | None:
        """Return the cursor after this many items; None at the end."""
        ...

    def other_fields(self, shown: int) -> Mapping[str, Any]:
        """Return the fields beside the list when the document has this many items."""
        ...


class ItemPage(DocumentItems):
    """A list from `--cursor` on, no longer than a limit."""

    def __init__(
        self,
        everything: Sequence[Any],
        *,
        key: Callable[[Any], str] | None = None,
        limit: int | None = None,
        time: Callable[[Any], int] | None = None,
        render: Callable[[list[Any]], Iterable[Any]] = iter,
    ) -> None:
        """`key` tells items apart. Where the newest come first, `time` says when an item was changed.

        `render` makes what is printed of the items of this page.
        """
        self._all = everything
        self._time = time
        self._key = key or _whole
        cursor = JsonRequest.cursor
        self._first = 0 if cursor is None or not everything else self._index_after(cursor)
        self.items = render(list(everything[self._first :][: limit or None]))

    def _index_after(self, cursor: str) -> int:
        """Return the index behind the item that it names; where that is gone, behind as many as there were."""
        at, _, name = cursor.partition("-")
        numbers = [cursor_number(part, cursor) for part in at.split(".")]
        if len(numbers) != (1 if self._time is None else 2):
            raise bad_cursor(cursor)
        if self._time is not None:
            return self._index_after_time(*numbers, name=name)
        positions = [index for index, item in enumerate(self._all) if self._name(item) == name]
        return positions[0] + 1 if positions else numbers[0]

    def _index_after_time(self, time: int, nth: int, *, name: str) -> int:
        """Return the index behind the nth item of that time; if that item is gone or moved, behind the one before."""
        assert self._time is not None
        times = [self._time(item) for item in self._all]
        first = next((index for index, other in enumerate(times) if other <= time), len(times))
        same = [self._name(item) for item, other in zip(self._all, times, strict=True) if other == time]
        return first + min(nth if name in same else nth - 1, len(same))

    def _name(self, item: Any) -> str:
        return f"{crc32(self._key(item).encode('utf-8', 'surrogatepass')):08x}"

    def cursor(self, shown: int) -> str | None:
        """See `DocumentItems`."""
        last = self._first + shown
        if not 0 < last < len(self._all):
            return None
        item, position = self._all[last - 1], str(last)
        if self._time is not None:
            time = self._time(item)
            position = f"{time}.{sum(1 for other in self._all[:last] if self._time(other) == time)}"
        return f"{position}-{self._name(item)}"

    def other_fields(self, shown: int) -> Mapping[str, Any]:
        """See `DocumentItems`."""
        return {}


def _whole(item: Any) -> str:
    return encode_json(item).decode()


def bad_cursor(cursor: str) -> UsageError:
    """Return the error for a cursor that no answer gave."""
    return UsageError(f"no such cursor: {cursor!r:.80}", hint="take `cursor` from the answer before")


def cursor_number(part: str, cursor: str) -> int:
    """Return the number that a part of a cursor is. Raises `bad_cursor` if it is none, or too large for any list."""
    if not (part.isascii() and part.isdecimal() and len(part) <= 19 and int(part) <= _LARGEST):
        raise bad_cursor(cursor)
    return int(part)


def print_items(head: Mapping[str, Any], name: str, listed: DocumentItems) -> None:
    """Write a document as its list is read: that may be larger than memory. What `--max-bytes` may cut is held back."""
    first = safe_json(encode_json(_selected(head)))[:-1] + b',"%b":[' % name.encode()
    lines = map(item_line, listed.items)
    if JsonRequest.max_bytes is None:
        _write_all(first, lines, listed)
    else:
        _write_within(JsonRequest.max_bytes, first, lines, listed)


def _write_all(first: bytes, lines: Iterator[bytes], listed: DocumentItems) -> None:
    number = 0
    write_line(first)
    waiting = b""
    for line in lines:
        if number:
            write_line(waiting + b",")
        waiting, number = line, number + 1
    write_line(waiting + _closing(listed, number, 0))


def _write_within(max_bytes: int, first: bytes, lines: Iterator[bytes], listed: DocumentItems) -> None:
    """Write as many items as fit, or raise `UsageError` where not even one does."""
    kept, left_out, next_line = _fitting(lines, max_bytes - len(first))
    while len(whole := _document(first, kept, listed, left_out)) >= max_bytes and kept:
        next_line = kept.pop()
        left_out += 1
    if JsonRequest.is_repeatable and (len(whole) >= max_bytes or (left_out and not kept)):
        if left_out:
            whole = _document(first, [next_line], listed, left_out - 1)
        raise UsageError(
            f"--max-bytes {max_bytes} has no room for {'the next item' if left_out else 'the answer'}",
            hint=f"--max-bytes {len(whole) + 1} has" + ("; --fields leaves less of each item" if left_out else ""),
        )
    write_line(whole)


def _fitting(lines: Iterator[bytes], room: int) -> tuple[list[bytes], int, bytes]:
    """Return the lines that may fit, how many more there are, and the first of these."""
    kept: list[bytes] = []
    left_out, next_line = 0, b""
    for line in lines:
        room -= len(line) + 2
        if left_out or room < 0:
            next_line = next_line or line
            left_out += 1
        else:
            kept.append(line)
    return kept, left_out, next_line


def _document(first: bytes, kept: list[bytes], listed: DocumentItems, left_out: int) -> bytes:
    return first + b"\n" + b",\n".join(kept) + _closing(listed, len(kept), left_out)


def _closing(listed: DocumentItems, shown: int, left_out: int) -> bytes:
    """Return the end of the document behind this many items."""
    cursor = listed.cursor(shown) if JsonRequest.is_repeatable else None
    tail = {**_selected(listed.other_fields(shown)), "left_out": left_out, "cursor": cursor}
    return safe_json(b"\n]," + encode_json(tail)[1:])


def _selected(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields beside the list; with `--fields`, what stands aside of it has only what is named of it."""
    if JsonRequest.fields is None or JsonRequest.module is None:
        return dict(data)
    declared = {bare(name): field for name, field in JsonRequest.module.FIELDS.items()}
    selected: dict[str, Any] = {}
    for name, value in data.items():
        if name not in declared or declared[name].role != "aside":
            selected[name] = value
        else:
            named = JsonRequest.fields.get(name)
            selected[name] = [] if named is None else project(json.loads(encode_json(value)), named)
    return selected


def item_line(item: Any) -> bytes:
    """Return an item as JSON, with the fields that were asked for."""
    if JsonRequest.fields is not None:
        item = project(json.loads(item if isinstance(item, bytes) else encode_json(item)), JsonRequest.fields)
    return safe_json(item if isinstance(item, bytes) else encode_json(item))
