"""Reading on from a resume point: what readers of files that only grow share."""

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
"""In bytes: more than that is read from the start, because all steps of the appended part are held in memory."""
_SMALL = 1000
APART = 32 << 10
"""The least distance of two resume points in bytes: so much is read again in no time."""


class NeedsFullRead(Exception):
    """The appended part refers to records before the resume point; the whole file must be read."""


def growing(
    kind: type[_State], read: Callable[[Source, ResumePoint | None, _State | None], Reading]
) -> Callable[[Source, ResumePoint], Reading | None]:
    """`Format.growth` for a reader that can begin at a resume point, with the state that it had there."""

    def grown(source: Source, start: ResumePoint) -> Reading | None:
        if not 0 <= os.path.getsize(source.path) - start.offset <= _MOST:
            return None
        try:
            state = msgspec.convert(start.state, kind)
        except msgspec.ValidationError:
            return None  # an earlier version made it
        return settled(read(source, start, state))

    return grown


def settled(reading: Reading) -> Reading | None:
    """That reading with all its steps in memory; None if one of them needs a full read."""
    try:
        reading.steps = iter(list(reading.steps))
    except NeedsFullRead:
        return None
    return reading


class ResumePoints(Generic[_State]):
    """The resume point that a file is read from, and the newest one that was found in it."""

    def __init__(self, start: ResumePoint | None, state: _State | None = None) -> None:
        self.is_part = start is not None
        """Whether the file is read from a resume point on."""
        self.start = start.offset if start is not None else 0
        """The offset from which the file is read."""
        self.given = start.steps if start is not None else 0
        """The number of steps that were given, in this reading and before."""
        self.next_offset = 0
        """The offset from which on there may be another resume point."""
        self._newest, self._state = start, state

    def set(self, offset: int, pending: int, state: _State) -> None:
        """Set a resume point. `pending` is the number of steps before it that are not given yet."""
        self.next_offset = offset + APART
        self._newest, self._state = ResumePoint(offset, self.given + pending), state

    def newest(self, **now: Any) -> ResumePoint | None:
        """The newest resume point, with the state there, of which these fields are as of now."""
        if self._newest is None or self._state is None:
            return self._newest
        return replace(self._newest, state=msgspec.to_builtins(replace(self._state, **now)))

    def require(self, is_there: bool) -> None:
        """Raise `NeedsFullRead` if what a record refers to is missing because it lies before the start."""
        if self.is_part and not is_there:
            raise NeedsFullRead


def small(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts that the state at a resume point holds: all but the long ones."""
    return {key: value for key, value in facts.items() if len(msgspec.json.encode(value)) < _SMALL}
