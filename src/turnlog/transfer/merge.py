"""Merging facts, notes and usage that only one side has: they need no fork, just as between two processes."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from datetime import UTC, datetime
from typing import TypeVar

from msgspec.structs import replace

from turnlog.log.entry import WIDE_FACTS, Answer, AnyEntry, Ask, Fold, Set, Started, Writer
from turnlog.log.field import NamesEntry, change
from turnlog.log.ids import new_id
from turnlog.store import derived
from turnlog.thread.appender import Appender
from turnlog.thread.history import History
from turnlog.thread.reader import SessionReader
from turnlog.transfer.outgoing import Outgoing, OutgoingLine

_NOT_NEEDED = (Writer, Fold)
_E = TypeVar("_E", bound=AnyEntry)
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def merges(outgoing: Outgoing, after: int) -> bool:
    """Whether everything after an entry can be appended to any log."""
    return all(
        (entry.merges or isinstance(entry, _NOT_NEEDED)) and not entry.unverified and not entry.blobs
        for entry in _entries(outgoing, after)
    )


def count_new(target: History, outgoing: Outgoing, after: int) -> int:
    """Return how many entries `merge` would append: those after entry `after` that the target lacks."""
    ids = {entry.id for entry in _entries(outgoing, after) if not isinstance(entry, _NOT_NEEDED)}
    return len(ids) - len(_seqs_of(ids, target.lines()))


def merge(appender: Appender, outgoing: Outgoing, after: int) -> int:
    """Append the entries that the target lacks, with their ids and times. Returns how many these were.

    Of two facts with the same name, the later one counts: if that is theirs, it is appended again. Of two answers to
    one question the earlier one counts, so that both homes agree.
    """
    history = appender.history
    their_entries = list(SessionReader(history).entries(after=after))
    ids = {entry.id for entry in _entries(outgoing, after)}
    inherited = _seqs_of(ids, history.lines(before=history.inherited_to + 1))  # once, for they may be many
    theirs = {entry.key: entry for entry in their_entries if isinstance(entry, Set)}
    numbers: dict[int, int] = {}
    added = 0
    for entry in _entries(outgoing, after):
        if isinstance(entry, _NOT_NEEDED):
            continue
        present = derived.find(history.log, entry.id)
        if present is not None or entry.id in inherited:
            numbers[entry.seq] = inherited[entry.id] if present is None else present.seq
            continue
        added += 1
        if not isinstance(entry, Set):
            moved = change(entry, NamesEntry, lambda seq: numbers.get(seq, seq))
            [appended] = appender.append([_before_theirs(moved, their_entries)])
            numbers[entry.seq] = appended.seq
            if isinstance(entry, Ask):
                _repeat(appender, entry, their_entries)
            continue
        appender.append([_in_place(entry, appender)])
        newest = theirs.get(entry.key)
        if newest is not None and _time_of(newest) > _time_of(entry):
            appender.append([_in_place(_as_new(newest), appender)])
    return added


def _seqs_of(ids: Container[str], entries: Iterable[AnyEntry]) -> dict[str, int]:
    """The `seq` of each entry that has one of these ids."""
    return {entry.id: entry.seq for entry in entries if entry.id in ids}


def _before_theirs(entry: AnyEntry, theirs: list[AnyEntry]) -> AnyEntry:
    """Return the entry; an answer that is earlier than theirs is marked as overriding theirs."""
    if not isinstance(entry, Answer):
        return entry
    first = next((their for their in theirs if isinstance(their, Answer) and their.ask == entry.ask), None)
    return entry if first is None or _time_of(first) < _time_of(entry) else replace(entry, over=first.seq)


def _repeat(appender: Appender, ask: Ask, theirs: list[AnyEntry]) -> None:
    """Append again what they recorded later for the same call: its start, or a later question with its answer."""
    same_call = [
        their
        for their in theirs
        if isinstance(their, (Ask, Started)) and (their.entry, their.call) == (ask.entry, ask.call)
    ]
    if not same_call or (isinstance(same_call[-1], Ask) and _time_of(same_call[-1]) < _time_of(ask)):
        return
    [appended] = appender.append([_as_new(same_call[-1])])
    answer = next((their for their in theirs if isinstance(their, Answer) and their.ask == same_call[-1].seq), None)
    if answer is not None:
        appender.append([replace(_as_new(answer), ask=appended.seq)])


def _as_new(entry: _E) -> _E:
    return replace(entry, id=new_id(), at=None, clock=None)


def _in_place(entry: Set, appender: Appender) -> Set:
    """Return a fact to be appended there: a session-wide one carries the current session-wide facts of that log."""
    if entry.key not in WIDE_FACTS:
        return entry
    facts = {name: value for name, value in appender.state.wide.items() if name in WIDE_FACTS and name != entry.key}
    return replace(entry, all=facts if entry.unset else {**facts, entry.key: entry.value})


def _time_of(entry: AnyEntry) -> tuple[datetime, str]:
    """The time of an entry by the clock of its writer, for comparison."""
    return entry.clock or entry.at or _LONG_AGO, entry.id


def _entries(outgoing: Outgoing, after: int) -> Iterator[AnyEntry]:
    return (item.entry for item in outgoing.lines(after=after) if isinstance(item, OutgoingLine))
