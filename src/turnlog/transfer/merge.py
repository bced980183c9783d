"""Facts, notes and spending that came on one side only: they need no fork, as they need none between two processes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec.structs import replace

from turnlog.log.entry import WIDE_FACTS, AnyEntry, Fold, Set, Writer
from turnlog.log.ids import new_id
from turnlog.store import Store
from turnlog.thread.appender import Appender
from turnlog.thread.reader import SessionReader
from turnlog.transfer.outgoing import Outgoing, Shipment

_NOT_NEEDED = (Writer, Fold)
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def merges(going: Outgoing, after: int) -> bool:
    """Whether everything after that entry can be appended to whatever the other side has."""
    return all(
        (entry.merges or isinstance(entry, _NOT_NEEDED)) and not entry.unverified and not entry.blobs
        for entry in _entries(going, after)
    )


def merge(store: Store, appender: Appender, going: Outgoing, after: int, *, dry_run: bool) -> int:
    """Append it there, under its ids, at its times; what is there already is left out. Returns how many were new.

    Of two facts with the same name, the later one stays: where that is theirs, it is said once more.
    """
    there = SessionReader(appender.history)
    theirs = {entry.key: entry for entry in there.entries(after=after) if isinstance(entry, Set)}
    added = 0
    for entry in _entries(going, after):
        if isinstance(entry, _NOT_NEEDED) or there.find(entry.id) is not None:
            continue
        added += 1
        if dry_run:
            continue
        if not isinstance(entry, Set):
            appender.append([entry])
            continue
        appender.append([_in_place(entry, appender)])
        newest = theirs.get(entry.key)
        if newest is not None and _when(newest) > _when(entry):
            appender.append([_in_place(replace(newest, id=new_id(), at=None, clock=None), appender)])
    return added


def _in_place(entry: Set, appender: Appender) -> Set:
    """A fact that goes there, with all session-wide ones as they are there."""
    if entry.key not in WIDE_FACTS:
        return entry
    facts = {name: value for name, value in appender.state.wide.items() if name in WIDE_FACTS and name != entry.key}
    return replace(entry, all=facts if entry.unset else {**facts, entry.key: entry.value})


def _when(entry: AnyEntry) -> tuple[datetime, str]:
    """When it was said, by the clock of who said it."""
    return entry.clock or entry.at or _LONG_AGO, entry.id


def _entries(going: Outgoing, after: int) -> Iterator[AnyEntry]:
    return (item.entry for item in going.lines(after=after) if isinstance(item, Shipment))
