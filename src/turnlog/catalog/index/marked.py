"""What somebody said of other agents' sessions, over what those say of themselves.

The home has it; the index notes it, so that whoever reads such a session again need not open the home.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from turnlog.catalog.index.batch import Doc, Passage
from turnlog.catalog.index.cards import ms_of, words
from turnlog.catalog.index.notes import note, noted
from turnlog.catalog.index.texts import clean, lines, sum_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from turnlog.catalog.index.batch import Batch
    from turnlog.catalog.index.engine import Engine
    from turnlog.store import Store
    from turnlog.thread.marking import ForeignMarks

_NOTED = "marks of others"
_FIRST = 1 << 40
"""The first step that is no step of a session, but a note on it."""
_AT_ONCE = 500


class _Marks(msgspec.Struct, array_like=True):
    """As the index notes them."""

    title: str | None
    archived: bool | None
    tags: dict[str, bool]
    notes: list[tuple[str, int, str]]


def _noted_as(marks: ForeignMarks) -> _Marks:
    tags = {key[4:]: bool(fact.value) for key, fact in marks.facts.items() if key.startswith("tag:")}
    notes = [(f"mark-{one.id}", ms_of(one.clock or one.at) or 0, clean(one.text)) for one in marks.notes]
    return _Marks(marks.title and clean(marks.title), marks.archived, tags, notes)


def _said_in(store: Store) -> dict[str, _Marks]:
    from turnlog.thread.marking import marks_in  # most that is read again is marked as it was

    return {name: _noted_as(marks) for name, marks in marks_in(store).items()}


_decode = msgspec.json.Decoder(dict[str, _Marks]).decode


class MarkedSessions:
    """The marks that an index knows."""

    def __init__(self, db: Engine) -> None:
        stored = noted(db, _NOTED)
        self.is_known = stored is not None
        self._is_new = False
        self._marks = _decode(stored) if stored else {}

    def learn(self, store: Store) -> None:
        """What the home says by now."""
        self._marks = {clean(name): marks for name, marks in _said_in(store).items()}
        self._is_new = True

    def remember(self, db: Engine) -> None:
        """Note it. Inside a transaction."""
        if self._is_new:
            note(db, _NOTED, msgspec.json.encode(self._marks).decode())

    def apply(self, batch: Batch) -> None:
        """Apply the marks to every session; restore the original values where marks were removed."""
        for id, name, own, row in _overlaid(batch.db, self._marks):
            mine = self._marks.get(name)
            batch.put(id, row)
            if mine is None:
                batch.do("DELETE FROM marked WHERE session = ?", (id,))
            else:
                batch.do("INSERT OR IGNORE INTO marked VALUES (?, ?, ?, ?)", (id, *own))
            _put_notes(batch, id, [] if mine is None else mine.notes)
        batch.flush()


def put_over(db: Engine, store: Store) -> None:
    """The same for an index in which nothing but glances is."""
    rows = [(*row.values(), id) for id, _, _, row in _overlaid(db, _said_in(store))]
    db.run("UPDATE sessions SET title = ?, tags = ?, is_archived = ? WHERE id = ?", rows)


def _put_notes(batch: Batch, session: int, notes: list[tuple[str, int, str]]) -> None:
    wanted = {entry: (at, text) for entry, at, text in notes}
    for row, _, step, entry, _ in list(batch.docs(session)):
        if step >= _FIRST and wanted.pop(entry, None) is None:
            batch.forget(row)
    for number, (entry, (at, text)) in enumerate(wanted.items()):
        passage = Passage("note", text, [], [])
        batch.add(Doc(at, session, _FIRST + at + number, entry, passage, sum_of(text)))


def _overlaid(db: Engine, marks: dict[str, _Marks]) -> Iterator[tuple[int, str, tuple[Any, ...], dict[str, Any]]]:
    """Of each session that has marks, or had some: number, name, what it says itself, and what is to be shown."""
    for id, name, *own in list(_rows(db, list(marks))):
        title, tags, is_archived = own
        mine = marks.get(name)
        if mine is not None:
            title = mine.title or title
            kept = {**dict.fromkeys(words(tags), True), **mine.tags}
            tags = lines(tag for tag, is_on in kept.items() if is_on)
            is_archived = is_archived if mine.archived is None else int(mine.archived)
        yield id, name, tuple(own), {"title": title, "tags": tags, "is_archived": is_archived}


def _rows(db: Engine, names: list[str]) -> Iterable[tuple[Any, ...]]:
    before = "SELECT s.id, s.name, m.title, m.tags, m.is_archived FROM marked m JOIN sessions s ON s.id = m.session"
    yield from db.rows(before)
    for begin in range(0, len(names), _AT_ONCE):
        some = names[begin : begin + _AT_ONCE]
        marks = ", ".join("?" * len(some))
        yield from db.rows(
            "SELECT id, name, title, tags, is_archived FROM sessions WHERE NOT is_ours AND NOT is_deleted "
            f"AND native IN ({marks}) AND name IN ({marks}) AND id NOT IN (SELECT session FROM marked)",
            [*(name.partition(":")[2] for name in some), *some],
        )
