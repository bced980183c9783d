"""Titles, tags and notes that people gave to other agents' sessions, over the sessions' own.

The home has them; the index keeps a copy, so that reading such a session again does not open the home.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from turnlog.catalog.index.batch import BEYOND, Doc, Passage
from turnlog.catalog.index.columns import clean, lines, ms_of, words
from turnlog.catalog.index.keys import sum_of
from turnlog.catalog.index.notes import MARKS, get_note, set_note

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from turnlog.catalog.index.batch import Batch
    from turnlog.catalog.index.engine import Engine
    from turnlog.catalog.index.rows import SessionRow
    from turnlog.store import Store
    from turnlog.thread.home.foreignmarks import ForeignMarks

_AT_ONCE = 500


class _Marks(msgspec.Struct, array_like=True):
    """The marks of a session, as the index stores them."""

    title: str | None
    archived: bool | None
    tags: dict[str, bool]
    notes: list[tuple[str, int, str]]


def _as_stored(marks: ForeignMarks) -> _Marks:
    tags = {key[4:]: bool(fact.value) for key, fact in marks.facts.items() if key.startswith("tag:")}
    notes = [(f"mark-{one.id}", ms_of(one.clock or one.at) or 0, clean(one.text)) for one in marks.notes]
    return _Marks(marks.title and clean(marks.title), marks.archived, tags, notes)


def _marks_of(store: Store) -> dict[str, _Marks]:
    from turnlog.thread.home.foreignmarks import marks_in  # not needed if no marks changed

    return {name: _as_stored(marks) for name, marks in marks_in(store).items()}


_decode = msgspec.json.Decoder(dict[str, _Marks]).decode


class MarkedSessions:
    """The marks that an index knows."""

    def __init__(self, db: Engine) -> None:
        stored = get_note(db, MARKS)
        self.is_known = stored is not None
        self._is_new = False
        self._marks = _decode(stored) if stored else {}

    def learn(self, store: Store) -> None:
        """Read the marks from the home."""
        self._marks = {clean(name): marks for name, marks in _marks_of(store).items()}
        self._is_new = True

    def remember(self, db: Engine) -> None:
        """Store marks that were read from the home. Inside a transaction."""
        if self._is_new:
            set_note(db, MARKS, msgspec.json.encode(self._marks).decode())

    def apply(self, batch: Batch) -> None:
        """Apply the marks to every session; restore the original values where marks were removed."""
        for id, name, own, row in _overlaid(batch.db, self._marks):
            marks = self._marks.get(name)
            batch.put(id, row)
            if marks is None:
                forget_own_values(batch, id)
            else:
                batch.execute("INSERT OR IGNORE INTO marked VALUES (?, ?, ?, ?)", (id, *own))
            _put_notes(batch, id, [] if marks is None else marks.notes)
        batch.flush()


def forget_own_values(batch: Batch, session: int) -> None:
    """Forget what a session says itself, because it was read again and has its own values in its row."""
    batch.execute("DELETE FROM marked WHERE session = ?", (session,))


def overlay(db: Engine, store: Store) -> None:
    """Apply the marks to an index of glances."""
    rows = [(*row.values(), id) for id, _, _, row in _overlaid(db, _marks_of(store))]
    db.run("UPDATE sessions SET title = ?, tags = ?, is_archived = ? WHERE id = ?", rows)


def _put_notes(batch: Batch, session: int, notes: list[tuple[str, int, str]]) -> None:
    wanted = {entry: (at, text) for entry, at, text in notes}
    for row, _, step, entry, _ in list(batch.docs(session)):
        if step >= BEYOND and wanted.pop(entry, None) is None:
            batch.delete_text(row)
    for number, (entry, (at, text)) in enumerate(wanted.items()):
        passage = Passage("note", text, [], [])
        batch.add(Doc(at, session, BEYOND + at + number, entry, passage, sum_of(text)))


def _overlaid(db: Engine, marks: dict[str, _Marks]) -> Iterator[tuple[int, str, tuple[Any, ...], SessionRow]]:
    """For each session that has or had marks: row, name, its own values, and the values to show."""
    for id, name, *own in list(_rows(db, list(marks))):
        title, tags, is_archived = own
        given = marks.get(name)
        if given is not None:
            title = given.title or title
            changed_tags = {**dict.fromkeys(words(tags), True), **given.tags}
            tags = lines(tag for tag, is_on in changed_tags.items() if is_on)
            is_archived = is_archived if given.archived is None else given.archived
        yield id, name, tuple(own), {"title": title, "tags": tags, "is_archived": bool(is_archived)}


def _rows(db: Engine, names: list[str]) -> Iterable[tuple[Any, ...]]:
    before = "SELECT s.id, s.name, m.title, m.tags, m.is_archived FROM marked m JOIN sessions s ON s.id = m.session"
    yield from db.rows(before)
    for begin in range(0, len(names), _AT_ONCE):
        some = names[begin : begin + _AT_ONCE]
        placeholders = ", ".join("?" * len(some))
        yield from db.rows(
            "SELECT id, name, title, tags, is_archived FROM sessions WHERE NOT is_ours AND NOT is_deleted "
            f"AND native IN ({placeholders}) AND name IN ({placeholders}) AND id NOT IN (SELECT session FROM marked)",
            [*(name.partition(":")[2] for name in some), *some],
        )
