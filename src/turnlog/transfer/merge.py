"""Facts, notes and spending that came on one side only: they need no fork, as they need none between two processes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TypeVar

from msgspec.structs import replace

from turnlog.log.entry import WIDE_FACTS, Answer, AnyEntry, Ask, Fold, Set, Started, Writer
from turnlog.log.field import NamesEntry, change
from turnlog.log.ids import new_id
from turnlog.thread.appender import Appender
from turnlog.thread.reader import SessionReader
from turnlog.transfer.outgoing import Outgoing, Shipment

_NOT_NEEDED = (Writer, Fold)
_E = TypeVar("_E", bound=AnyEntry)
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def merges(outgoing: Outgoing, after: int) -> bool:
    """Whether everything after that entry can be appended to whatever the other side has."""
    return all(
        (entry.merges or isinstance(entry, _NOT_NEEDED)) and not entry.unverified and not entry.blobs
        for entry in _entries(outgoing, after)
    )


def merge(appender: Appender, outgoing: Outgoing, after: int, *, dry_run: bool) -> int:
    """Append it there, under its ids, at its times; what is there already is left out. Returns how many were new.

    Of two facts with the same name, the later one stays: where that is theirs, it is said once more. Of two answers to
    one question the earlier counts, so that both homes agree.
    """
    there = SessionReader(appender.history)
    their_entries = list(there.entries(after=after))
    theirs = {entry.key: entry for entry in their_entries if isinstance(entry, Set)}
    numbers: dict[int, int] = {}
    added = 0
    for entry in _entries(outgoing, after):
        if isinstance(entry, _NOT_NEEDED):
            continue
        present = there.find(entry.id)
        if present is not None:
            numbers[entry.seq] = present.seq
            continue
        added += 1
        if dry_run:
            continue
        if not isinstance(entry, Set):
            moved = change(entry, NamesEntry, lambda seq: numbers.get(seq, seq))
            [appended] = appender.append([_before_theirs(moved, their_entries)])
            numbers[entry.seq] = appended.seq
            if isinstance(entry, Ask):
                _repeat(appender, entry, their_entries)
            continue
        appender.append([_in_place(entry, appender)])
        newest = theirs.get(entry.key)
        if newest is not None and _when(newest) > _when(entry):
            appender.append([_in_place(_anew(newest), appender)])
    return added


def _before_theirs(entry: AnyEntry, theirs: list[AnyEntry]) -> AnyEntry:
    """An answer that was given before theirs stands over it."""
    if not isinstance(entry, Answer):
        return entry
    first = next((one for one in theirs if isinstance(one, Answer) and one.ask == entry.ask), None)
    return entry if first is None or _when(first) < _when(entry) else replace(entry, over=first.seq)


def _repeat(appender: Appender, ask: Ask, theirs: list[AnyEntry]) -> None:
    """What they said of the same call stays the last word: that it was started, or a question that was asked later."""
    about = [
        one for one in theirs if isinstance(one, (Ask, Started)) and (one.entry, one.call) == (ask.entry, ask.call)
    ]
    if not about or (isinstance(about[-1], Ask) and _when(about[-1]) < _when(ask)):
        return
    [appended] = appender.append([_anew(about[-1])])
    answer = next((one for one in theirs if isinstance(one, Answer) and one.ask == about[-1].seq), None)
    if answer is not None:
        appender.append([replace(_anew(answer), ask=appended.seq)])


def _anew(entry: _E) -> _E:
    return replace(entry, id=new_id(), at=None, clock=None)


def _in_place(entry: Set, appender: Appender) -> Set:
    """A fact that goes there, with all session-wide ones as they are there."""
    if entry.key not in WIDE_FACTS:
        return entry
    facts = {name: value for name, value in appender.state.wide.items() if name in WIDE_FACTS and name != entry.key}
    return replace(entry, all=facts if entry.unset else {**facts, entry.key: entry.value})


def _when(entry: AnyEntry) -> tuple[datetime, str]:
    """When it was said, by the clock of who said it."""
    return entry.clock or entry.at or _LONG_AGO, entry.id


def _entries(outgoing: Outgoing, after: int) -> Iterator[AnyEntry]:
    return (item.entry for item in outgoing.lines(after=after) if isinstance(item, Shipment))
