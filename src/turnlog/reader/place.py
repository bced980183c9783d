"""Places in a session as people type them.

12            an entry: the last checkpoint at or before it, and the conversation as of it
turn:3        before turn 3 began; where no turn was bracketed, before the third prompt
before-lunch  the newest checkpoint of that name; label:12 where a name looks like something else
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from turnlog.errors import NotFound
from turnlog.log.entry import AnyEntry, Checkpoint, Head, Message, Turn
from turnlog.log.prompt.promptmessage import is_prompt
from turnlog.reader.part import Part, numbered
from turnlog.session.readonly import ReadOnlySession
from turnlog.thread.reader import history_of
from turnlog.thread.turnnumber import number_turn

_HINT = "`turnlog checkpoints` shows what there is"


class Place(Struct, frozen=True):
    """An entry to go back to, and how to call it."""

    seq: int
    words: str


class Turns(Struct, frozen=True):
    """The turns of a session, by their numbers."""

    numbers: dict[str, int]
    begins: dict[int, int]
    """The entry before which each began: its first checkpoint, or its first line."""
    covered: int | None
    """The last one that has a checkpoint at its beginning."""


def turns_of(session: ReadOnlySession) -> Turns:
    """Every turn that was bracketed, counted from 1 in the order they began."""
    numbers: dict[str, int] = {}
    begins: dict[int, int] = {}
    first: dict[str, int] = {}
    for entry in session.entries():
        if isinstance(entry, Checkpoint) and entry.when == "begin" and entry.turn is not None:
            first.setdefault(entry.turn, entry.seq)
        elif (number := number_turn(numbers, entry)) is not None:
            begins[number] = first.get(entry.turn or "", entry.seq)
    covered = max((number for turn, number in numbers.items() if turn in first), default=None)
    return Turns(numbers, begins, covered)


class TurnEntries(NamedTuple):
    """What belongs to a turn, oldest first, and the answer before it whose calls may have their results in it."""

    before: Message | None
    entries: Iterator[AnyEntry]


def entries_of_turn(session: ReadOnlySession, number: int) -> TurnEntries:
    """The entries of a turn.

    Turns count as for `turn:3`. A bracketed turn has all of its entries, also if a rewind left it behind, and those
    that were imported after the next one began.
    """
    numbers = turns_of(session).numbers
    history = history_of(session)
    if numbers:
        turn = next((turn for turn, of_turn in numbers.items() if of_turn == number), None)
        if turn is None:
            raise NotFound(f"no turn {number}: the session has {len(numbers)}")
        entries = (entry for entry in history.forward() if entry.turn == turn)
        shown = (history.whole(entry) for entry in entries if entry.parent is not None or entry.is_shown)
        return TurnEntries(None, shown)
    begins = _prompts(session)
    if number not in begins:
        raise NotFound(f"no turn {number}: the session has {len(begins)}")
    part = Part(session.head, after=begins[number], until=begins.get(number + 1, 0))
    return TurnEntries(part.before(session), part.entries(session))


def place_of(session: ReadOnlySession, text: str | None) -> Place:
    """Where a target leads; without one, before the last turn, or else the last checkpoint that somebody asked for."""
    if text is None:
        return _last(session)
    kind, colon, rest = text.partition(":")
    if colon and kind == "turn":
        begins = turns_of(session).begins or _prompts(session)
        number = numbered(rest)
        if number is None or number not in begins:
            raise NotFound(f"no turn {rest!r:.80} in session {session.handle}: it has {len(begins)}", hint=_HINT)
        return Place(begins[number], f"before turn {number}")
    if (seq := numbered(text)) is not None:
        if seq > session.seq:
            raise NotFound(f"no entry {seq} in session {session.handle}", hint="`turnlog log` shows what there is")
        return Place(seq, f"entry {seq}" if seq else "the beginning")
    label = rest if colon and kind == "label" else text
    for checkpoint in reversed(session.checkpoints()):
        if checkpoint.label == label:
            return Place(checkpoint.seq, f"“{label}”, entry {checkpoint.seq}")
    raise NotFound(f"no checkpoint {label!r:.80} in session {session.handle}", hint=_HINT)


def _prompts(session: ReadOnlySession) -> dict[int, int]:
    """The entry before each prompt of the conversation, counted from 1: the turns of a session that has no brackets."""
    prompts = [message for message in session.messages() if is_prompt(message)]
    return {number: prompt.seq - 1 for number, prompt in enumerate(prompts, 1)}


def _last(session: ReadOnlySession) -> Place:
    turns = turns_of(session)
    path = {message.seq for message in session.messages()}
    for entry in _not_rewound(session):
        number = turns.numbers.get(entry.turn) if entry.turn is not None else None
        is_asked = isinstance(entry, Message) and entry.seq in path and is_prompt(entry)
        if number is not None and (is_asked or (isinstance(entry, Turn) and entry.state == "begin")):
            return Place(turns.begins[number], f"before turn {number}")
        if is_asked:
            return Place(entry.seq - 1, f"before entry {entry.seq}")
    for checkpoint in reversed(session.checkpoints()):
        if checkpoint.when is None:
            name = f"“{checkpoint.label}”, " if checkpoint.label else ""
            return Place(checkpoint.seq, f"{name}entry {checkpoint.seq}")
    is_back = bool(history_of(session).state.undo)
    hint = "`turnlog undo` takes back the last rewind" if is_back else "`turnlog log` shows what there is"
    raise NotFound(f"session {session.handle} has no turn and no checkpoint to go back to", hint=hint)


def _not_rewound(session: ReadOnlySession) -> Iterator[AnyEntry]:
    """What was not left by a rewind, the newest first. A head entry of another agent hides nothing."""
    until: int | None = None
    for entry in session.entries(reverse=True):
        if until is not None and entry.seq > until:
            continue
        until = None
        if isinstance(entry, Head) and entry.origin is None:
            until = entry.asof
        else:
            yield entry


def checkpoint_at(session: ReadOnlySession, place: Place) -> Checkpoint | None:
    """The last checkpoint at or before a place."""
    return next((c for c in reversed(session.checkpoints()) if c.seq <= place.seq), None)
