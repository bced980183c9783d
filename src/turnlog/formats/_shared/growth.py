"""Going on from a mark: what readers of files that only grow share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from turnlog.formats import Reading, ResumePoint, Source

_T = TypeVar("_T")
_MOST = 64 << 20
"""What was appended is held as a whole until it is known not to reach back; more than that is read from the start."""
_SMALL = 1000
APART = 16 << 10
"""How far marks are apart, at least: so much is read again in no time."""


class NeedsFullRead(Exception):
    """The appended part refers to records before the mark; the whole file must be read."""


def state_of(source: Source, mark: ResumePoint, kind: type[_T]) -> _T | None:
    """What is known at a mark; None if nothing is gained by going on from there, or an earlier version made it."""
    if not 0 <= os.path.getsize(source.path) - mark.offset <= _MOST:
        return None
    try:
        return msgspec.convert(mark.state, kind)
    except msgspec.ValidationError:
        return None


def growing(
    kind: type[_T], read: Callable[[Source, ResumePoint | None, _T | None], Reading]
) -> Callable[[Source, ResumePoint], Reading | None]:
    """`Format.growth` for a reader that can begin at a mark, with what was known there."""

    def grown(source: Source, mark: ResumePoint) -> Reading | None:
        state = state_of(source, mark, kind)
        return settled(read(source, mark, state)) if state is not None else None

    return grown


def settled(reading: Reading) -> Reading | None:
    """That reading with all its steps at hand; None where it reaches back."""
    try:
        reading.steps = iter(list(reading.steps))
    except NeedsFullRead:
        return None
    return reading


def small(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts that a mark carries: all but the long ones."""
    return {key: value for key, value in facts.items() if len(msgspec.json.encode(value)) < _SMALL}
