"""How far two copies of a session agree, and which of them continued after that."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from msgspec import Struct

from turnlog.errors import AlreadyExists
from turnlog.log.entry import Entry, Fold, Head, Set, Start
from turnlog.log.written import WrittenLine
from turnlog.store import Listed, Log
from turnlog.transfer.outgoing import Outgoing, OutgoingLine


class OtherSessionError(AlreadyExists):
    """The target has another session with the same id."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"session {name!r} over there is another one: only its id is the same",
            hint=f"give one of them another id: `turnlog rm {name}`, then `turnlog restore {name} --as NEW-ID`",
        )


class Divergence(Struct, frozen=True):
    """The common part of two logs of one session, and what follows it."""

    common: OutgoingLine | None = None
    """The last entry that both logs have."""
    mine: OutgoingLine | None = None
    """The first later entry that only the source has."""
    has_theirs: bool = False
    """Whether the target has a later entry of its own."""

    @property
    def last(self) -> int:
        """The target's `seq` of the last common entry; 0 if there is none."""
        return self.common.entry.seq if self.common is not None else 0


def divergence_of(outgoing: Outgoing, theirs: Log | None) -> Divergence:
    """Compare the log to be sent with the log at the target.

    Both may grow concurrently, by writers or other transfers.
    """
    if theirs is None:
        return Divergence(mine=next(_lines_of(outgoing, 0), None))
    while True:
        divergence = _compare_ends(outgoing, theirs)
        # The two logs were not read at the same moment. If both have an entry after the last common one, the copies
        # differ only if these are different entries, because an entry in a log never changes.
        if divergence.mine is None or not divergence.has_theirs or not _agree(outgoing, theirs, divergence.last):
            return divergence


def _agree(outgoing: Outgoing, theirs: Log, after: int) -> bool:
    """Whether both logs now continue with the same entry."""
    here, there = next(_lines_of(outgoing, after), None), next(_written(theirs, after), None)
    return here is not None and there is not None and are_same(here, there)


def _compare_ends(outgoing: Outgoing, theirs: Log) -> Divergence:
    last = _last(theirs)
    # Nearly always one log is the beginning of the other.
    end = min(last, outgoing.last())
    common = _same_end(outgoing, theirs, end)
    if common is None:
        return _walk(outgoing, theirs)
    return Divergence(common, next(_lines_of(outgoing, end), None), last > end)


def _same_end(outgoing: Outgoing, theirs: Log, end: int) -> OutgoingLine | None:
    """Return entry `end` if both logs have it and everything before it; None otherwise.

    A log only grows, so one common line proves everything before it, unless the entry can be merged: a third home may
    have brought that to both. Then earlier entries are compared, too.
    """
    near = 1
    while True:
        after = max(0, end - near)
        here = list(takewhile(lambda item: item.entry.seq <= end, _lines_of(outgoing, after)))
        there = list(takewhile(lambda item: item.entry.seq <= end, _written(theirs, after)))
        if not here or here[-1].entry.seq != end or len(here) != len(there) or not all(map(are_same, here, there)):
            return None
        if after == 0 or not all(item.entry.merges for item in here):
            return here[-1]
        near *= 8


def _walk(outgoing: Outgoing, theirs: Log) -> Divergence:
    """Compare entry by entry. An entry before a common one that only one side can read is damaged on the other side."""
    ours, others = _lines_of(outgoing, 0), _written(theirs, 0)
    a, b = next(ours, None), next(others, None)
    common: OutgoingLine | None = None
    first: OutgoingLine | None = None
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


def are_same(here: OutgoingLine | WrittenLine, there: OutgoingLine | WrittenLine) -> bool:
    """Whether two lines hold the same entry."""
    if here.line == there.line:
        return True
    if (here.entry.seq, here.entry.id) != (there.entry.seq, there.entry.id):
        return False
    # An entry that was edited, erased, or changed by an erasure on one side is still the same entry.
    return any(e.unverified or e.void or isinstance(e, _REPEATING) for e in (here.entry, there.entry))


_REPEATING = (Fold, Head, Set, Start)


def _last(log: Log) -> int:
    return next((item.seq for item in log.read(reverse=True) if isinstance(item, Entry)), 0)


def _lines_of(outgoing: Outgoing, after: int) -> Iterator[OutgoingLine]:
    return (item for item in outgoing.lines(after=after) if isinstance(item, OutgoingLine))


def _written(log: Log, after: int) -> Iterator[WrittenLine]:
    return (item for item in log.lines(after=after) if isinstance(item, WrittenLine))


def end_alike(here: Listed, there: Listed) -> bool:
    """Whether two logs end with the same entry: a log only grows, so they are equal then.

    For an entry that can be merged this proves nothing: a third home may have brought it to both.
    """
    mine, theirs = here.last, there.last
    if mine is None or theirs is None or here.start is None or there.start is None or mine.merges:
        return False
    return (mine.seq, mine.id, mine.at, mine.type) == (theirs.seq, theirs.id, theirs.at, theirs.type)
