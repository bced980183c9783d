"""Going on from a mark: what readers of files that only grow share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnlog.formats import Reading, ResumePoint, Source

_State = TypeVar("_State", bound=Struct)
_MOST = 64 << 20
"""What was appended is held as a whole until it is known not to reach back; more than that is read from the start."""
_SMALL = 1000
APART = 32 << 10
"""The least distance of two marks in bytes: so much is read again in no time."""


class NeedsFullRead(Exception):
    """The appended part refers to records before the mark; the whole file must be read."""


def growing(
    kind: type[_State], read: Callable[[Source, ResumePoint | None, _State | None], Reading]
) -> Callable[[Source, ResumePoint], Reading | None]:
    """`Format.growth` for a reader that can begin at a mark, with what was known there."""

    def grown(source: Source, mark: ResumePoint) -> Reading | None:
        if not 0 <= os.path.getsize(source.path) - mark.offset <= _MOST:
            return None
        try:
            state = msgspec.convert(mark.state, kind)
        except msgspec.ValidationError:
            return None  # an earlier version made it
        return settled(read(source, mark, state))

    return grown


def settled(reading: Reading) -> Reading | None:
    """That reading with all its steps at hand; None where it reaches back."""
    try:
        reading.steps = iter(list(reading.steps))
    except NeedsFullRead:
        return None
    return reading


class Marks(Generic[_State]):
    """From where a file is read, and from where the next reading of it can go on."""

    def __init__(self, start: ResumePoint | None, state: _State | None = None) -> None:
        self.is_part = start is not None
        """Whether what comes before the start is not read."""
        self.start, self.given = (start.offset, start.steps) if start is not None else (0, 0)
        """Where the file is read from, and how many steps were given up to now."""
        self.next = 0
        """From where on the next mark may be."""
        self._newest, self._state = start, state

    def put(self, offset: int, pending: int, state: _State) -> None:
        """A new mark: where it is, how many steps before it are not given yet, and what is known there."""
        self.next = offset + APART
        self._newest, self._state = ResumePoint(offset, self.given + pending), state

    def newest(self, **now: Any) -> ResumePoint | None:
        """The newest mark, with the state there, of which these fields are as of now."""
        if self._newest is None or self._state is None:
            return self._newest
        return replace(self._newest, state=msgspec.to_builtins(replace(self._state, **now)))

    def require(self, is_there: bool) -> None:
        """Give up if what a record refers to is not at hand: it lies before the start."""
        if self.is_part and not is_there:
            raise NeedsFullRead


def small(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts that a mark carries: all but the long ones."""
    return {key: value for key, value in facts.items() if len(msgspec.json.encode(value)) < _SMALL}
