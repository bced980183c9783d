"""Documents that are about a list: an item on a line, as many as `--max-bytes` has room for, and where it goes on.

`left_out` says how many of those that were asked for had no room; `cursor` is what `--cursor` takes to go on behind
the last one, and null at the end, or where the command did something and asking again would do it again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

from turnlog.cli.draw.text import safe_json
from turnlog.cli.frame.exitcode import Misused
from turnlog.cli.frame.output import JsonAsked, dumped, write_line


class PrintedList:
    """A list from `--cursor` on, no longer than a limit. `items` are what is printed of it."""

    items: Iterable[Any]
    """Values, or JSON as bytes."""

    def __init__(
        self,
        everything: Sequence[Any],
        *,
        key: Callable[[Any], str] | None = None,
        limit: int | None = None,
        time: Callable[[Any], int] | None = None,
    ) -> None:
        """`key` tells items apart. Where the newest come first, `time` says when an item was changed."""
        self._all = everything
        self._time = time
        self._key = key or _whole
        self._first = 0 if JsonAsked.cursor is None or not everything else self._behind(JsonAsked.cursor)
        self.items = everything[self._first :][: limit or None]

    def _behind(self, cursor: str) -> int:
        """Behind the item that it names; where that is gone, behind as many as there were."""
        at, _, name = cursor.partition("-")
        parts = at.split(".")
        if len(parts) != (1 if self._time is None else 2) or not all(p.isascii() and p.isdecimal() for p in parts):
            raise bad_cursor(cursor)
        if self._time is not None:
            return self._behind_time(int(parts[0]), int(parts[1]), name=name)
        positions = [index for index, item in enumerate(self._all) if self._name(item) == name]
        return positions[0] + 1 if positions else int(at)

    def _behind_time(self, time: int, nth: int, *, name: str) -> int:
        """Behind that time, where it was the item in that place; whether it has gone, or moved to the front."""
        assert self._time is not None
        times = [self._time(item) for item in self._all]
        first = next((index for index, one in enumerate(times) if one <= time), len(times))
        same = [self._name(item) for item, one in zip(self._all, times, strict=True) if one == time]
        return first + min(nth if name in same else nth - 1, len(same))

    def _name(self, item: Any) -> str:
        return f"{crc32(self._key(item).encode('utf-8', 'surrogatepass')):08x}"

    def cursor(self, shown: int) -> str | None:
        """The cursor after this many items; None at the end."""
        last = self._first + shown
        if not 0 < last < len(self._all):
            return None
        item, position = self._all[last - 1], str(last)
        if self._time is not None:
            time = self._time(item)
            position = f"{time}.{sum(1 for one in self._all[:last] if self._time(one) == time)}"
        return f"{position}-{self._name(item)}"

    def beside(self, shown: int) -> Mapping[str, Any]:
        """The other fields of the document when it has this many items."""
        return {}


def _whole(item: Any) -> str:
    return dumped(item).decode()


def bad_cursor(cursor: str) -> Misused:
    """The error for a cursor that no answer gave."""
    return Misused(f"no such cursor: {cursor!r:.80}", hint="take `cursor` from the answer before")


def print_items(head: Mapping[str, Any], name: str, listed: PrintedList) -> None:
    """Write it as it is read: a list may be larger than memory. What `--max-bytes` may cut is held back so long."""
    first = safe_json(dumped(_beside_fields(head)))[:-1] + b',"%b":[' % name.encode()
    most = JsonAsked.max_bytes
    if most is None:
        number = 0
        write_line(first)
        waiting = b""
        for line in map(item_line, listed.items):
            if number:
                write_line(waiting + b",")
            waiting, number = line, number + 1
        write_line(waiting + _last(listed, number, 0))
        return
    kept, left, least = _fitting(map(item_line, listed.items), most - len(first))
    while len(whole := first + b"\n" + b",\n".join(kept) + _last(listed, len(kept), left)) >= most and kept:
        least = max(least, len(kept.pop()))
        left += 1
    if JsonAsked.can_again and (len(whole) >= most or (left and not kept)):
        need = len(whole) + 1 + (least + 64 if left else 0)
        raise Misused(
            f"--max-bytes {most} has no room for {'the next item' if left else 'the answer'}",
            hint=f"--max-bytes {need} has; --fields leaves less of each item" if left else f"--max-bytes {need} has",
        )
    write_line(whole)


def _fitting(lines: Iterator[bytes], room: int) -> tuple[list[bytes], int, int]:
    """Those that may fit, how many more there are, and how long the first of these is."""
    kept: list[bytes] = []
    left = least = 0
    for line in lines:
        room -= len(line) + 2
        if left or room < 0:
            least = least or len(line)
            left += 1
        else:
            kept.append(line)
    return kept, left, least


def _last(listed: PrintedList, shown: int, left: int) -> bytes:
    cursor = listed.cursor(shown) if JsonAsked.can_again else None
    tail = {**_beside_fields(listed.beside(shown)), "left_out": left, "cursor": cursor}
    return safe_json(b"\n]," + dumped(tail)[1:])


def _beside_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """With `--fields`, what stands aside of the items has only what is named of it."""
    if JsonAsked.tree is None or JsonAsked.module is None:
        return dict(data)
    from turnlog.cli.frame.selection import only

    shape = {name.strip("[]"): field for name, field in JsonAsked.module.FIELDS.items()}
    return {
        name: value
        if name not in shape or shape[name].role != "aside"
        else (only(json.loads(dumped(value)), JsonAsked.tree[name]) if name in JsonAsked.tree else [])
        for name, value in data.items()
    }


def item_line(item: Any) -> bytes:
    """An item as JSON, with the fields that are wanted."""
    if JsonAsked.tree is not None:
        from turnlog.cli.frame.selection import only

        item = only(json.loads(item if isinstance(item, bytes) else dumped(item)), JsonAsked.tree)
    return safe_json(item if isinstance(item, bytes) else dumped(item))
