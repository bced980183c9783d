"""How far two copies of a session agree, and which of them went on after that."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from msgspec import Struct

from turnlog.log.entry import Entry, Fold, Head, Set, Start
from turnlog.log.written import WrittenLine
from turnlog.store import Log
from turnlog.transfer.outgoing import Outgoing, Shipment


class Divergence(Struct, frozen=True):
    """What two logs of one session have in common."""

    common: Shipment | None = None
    """The last entry that both have."""
    mine: Shipment | None = None
    """The first one after it that is only here."""
    has_theirs: bool = False
    """Whether there is one that is only there."""

    @property
    def last(self) -> int:
        """The number of the last entry that both have, on the other side; 0 if there is none."""
        return self.common.entry.seq if self.common is not None else 0


def divergence_of(outgoing: Outgoing, theirs: Log | None) -> Divergence:
    """Compare what is to be there with what is. Both may grow meanwhile: others write, and others bring the same."""
    if theirs is None:
        return Divergence(mine=next(_carried(outgoing, 0), None))
    while True:
        meeting = _meet(outgoing, theirs)
        # The logs were not read at one moment. What comes after the last entry that both have is only somebody else's
        # where it is another entry: an entry that is there stays what it is.
        if meeting.mine is None or not meeting.has_theirs or not _agree(outgoing, theirs, meeting.last):
            return meeting


def _agree(outgoing: Outgoing, theirs: Log, after: int) -> bool:
    """Whether both go on with the same entry by now."""
    here, there = next(_carried(outgoing, after), None), next(_written(theirs, after), None)
    return here is not None and there is not None and are_same(here, there)


def _meet(outgoing: Outgoing, theirs: Log) -> Divergence:
    last = _last(theirs)
    # Nearly always one of them is where the other was.
    end = min(last, outgoing.last())
    common = _same_end(outgoing, theirs, end)
    if common is None:
        return _walk(outgoing, theirs)
    return Divergence(common, next(_carried(outgoing, end), None), last > end)


def _same_end(outgoing: Outgoing, theirs: Log, end: int) -> Shipment | None:
    """Entry `end`, if both have it and all before it.

    A log only grows, so one line that both have says it of all before. But not one that can be merged: a third home may
    have brought it to both. Then older ones are asked as well.
    """
    near = 1
    while True:
        after = max(0, end - near)
        here = list(takewhile(lambda item: item.entry.seq <= end, _carried(outgoing, after)))
        there = list(takewhile(lambda item: item.entry.seq <= end, _written(theirs, after)))
        if not here or here[-1].entry.seq != end or len(here) != len(there) or not all(map(are_same, here, there)):
            return None
        if after == 0 or not all(item.entry.merges for item in here):
            return here[-1]
        near *= 8


def _walk(outgoing: Outgoing, theirs: Log) -> Divergence:
    """Entry by entry. What only one side can read, before something that both have, was damaged on the other."""
    ours, others = _carried(outgoing, 0), _written(theirs, 0)
    a, b = next(ours, None), next(others, None)
    common: Shipment | None = None
    first: Shipment | None = None
    has_theirs = False
    while a is not None and b is not None:
        if a.entry.seq == b.entry.seq:
            if not are_same(a, b):
                break
            common, first, has_theirs = a, None, False
            a, b = next(ours, None), next(others, None)
        elif a.entry.seq < b.entry.seq:
            first = first or a
            a = next(ours, None)
        else:
            has_theirs = True
            b = next(others, None)
    return Divergence(common, first or a, has_theirs or b is not None)


def are_same(here: Shipment | WrittenLine, there: Shipment | WrittenLine) -> bool:
    """Whether two lines are of one entry."""
    if here.line == there.line:
        return True
    if (here.entry.seq, here.entry.id) != (there.entry.seq, there.entry.id):
        return False
    # What somebody edited on one side is no other entry, nor is what was erased there, or repeated what was.
    return any(e.unverified or e.void or isinstance(e, _REPEATING) for e in (here.entry, there.entry))


_REPEATING = (Fold, Head, Set, Start)


def _last(log: Log) -> int:
    return next((item.seq for item in log.read(reverse=True) if isinstance(item, Entry)), 0)


def _carried(outgoing: Outgoing, after: int) -> Iterator[Shipment]:
    return (item for item in outgoing.lines(after=after) if isinstance(item, Shipment))


def _written(log: Log, after: int) -> Iterator[WrittenLine]:
    return (item for item in log.lines(after=after) if isinstance(item, WrittenLine))
