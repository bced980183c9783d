"""Marks of other agents' sessions: titles, tags, notes, in one session of the home that no listing shows.

Each is a fact of its own, or a note: two processes, and two homes, may say something at once, and nothing is lost. In
every home that session begins with the same entry, so that push, pull and sync bring what is in it together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from turnlog.errors import AlreadyExists, Invalid, NotFound
from turnlog.log.entry import Note, Set, Start
from turnlog.log.ids import MARKS
from turnlog.store import Store
from turnlog.thread.history import History, opened

if TYPE_CHECKING:
    from turnlog.thread.appender import Appender
    from turnlog.thread.creator import Creator

STAR = "star"
"""The tag that a star is."""
MOST_NOTE = 4_000
"""The most characters of a note: it stays in its line, and what is in a line can be merged."""
_TAG = "tag:"


class ForeignMarks(Struct, frozen=True):
    """What was said of one session. Of two facts of one name the last one counts."""

    facts: dict[str, Set] = {}
    """By `title`, `archived`, and `tag:` with each tag: True, or False where it was taken off."""
    notes: list[Note] = []

    @property
    def title(self) -> str | None:
        """The title that was given to it."""
        fact = self.facts.get("title")
        return fact.value if fact is not None and isinstance(fact.value, str) else None

    @property
    def archived(self) -> bool | None:
        """Whether it was archived, or taken out of the archive."""
        fact = self.facts.get("archived")
        return bool(fact.value) if fact is not None else None

    def tags(self, before: Iterable[str] = ()) -> list[str]:
        """The tags that it has, if it had those before."""
        tags = {key.removeprefix(_TAG): bool(fact.value) for key, fact in self.facts.items() if key.startswith(_TAG)}
        return [tag for tag in dict.fromkeys([*before, *tags]) if tags.get(tag, True)]


def marks_in(store: Store) -> dict[str, ForeignMarks]:
    """Of every session that something was said of, by `agent:id`."""
    try:
        log = store.open(MARKS, read_only=True)
    except NotFound:
        return {}
    marks: dict[str, ForeignMarks] = {}
    with opened(store, log) as history:
        for entry in _said(history):
            data: Any = entry.data if isinstance(entry, Note) else None
            if isinstance(entry, Set):
                key, _, name = entry.key.partition(" ")
                if not name:
                    continue
                facts = marks.setdefault(name, ForeignMarks(facts={}, notes=[])).facts
                facts.pop(key, None)
                if not entry.unset:
                    facts[key] = entry
            elif isinstance(data, dict) and isinstance(name := data.get("session"), str):  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
                marks.setdefault(name, ForeignMarks(facts={}, notes=[])).notes.append(entry)
    return marks


def _said(history: History) -> Iterator[Set | Note]:
    for entry in history.forward(0):
        if isinstance(entry, (Set, Note)) and not entry.void:
            yield history.whole(entry)


def mark_title(name: str, title: str | None) -> Set:
    """That session is called so; None for what its agent calls it."""
    key = f"title {name}"
    return Set(key=key, unset=True) if title is None else Set(key=key, value=title)


def mark_archived(name: str, is_archived: bool) -> Set:
    """Listings leave that session out, or no longer."""
    return Set(key=f"archived {name}", value=is_archived, exact=True)


def mark_tag(name: str, tag: str, is_on: bool) -> Set:
    """That session has this tag, or no longer."""
    return Set(key=f"{_TAG}{tag} {name}", value=is_on, exact=True)


def mark_note(name: str, text: str) -> Note:
    """Something for people to read with that session."""
    return Note(text=checked_note(text), data={"session": name})


def checked_note(text: str) -> str:
    """The text of a note that can be brought to other homes."""
    if not text.strip() or len(text) > MOST_NOTE:
        raise Invalid(f"a note of {len(text):,} characters", hint=f"it has 1 to {MOST_NOTE:,}")
    return text


def append_marks(creator: Creator, *entries: Set | Note) -> None:
    """Append marks of other agents' sessions. Durable when this returns."""
    from turnlog.thread.appender import appending  # readers do not load the writing side

    store = creator.store
    try:
        log = store.open(MARKS)
    except NotFound:
        with suppress(AlreadyExists):  # another process was quicker
            creator.begin([Start(id=MARKS, hidden=True)]).close()
        log = store.open(MARKS)
    with appending(store, log) as appender:
        appender.append(list(entries))


def copy_marks(appender: Appender, marks: ForeignMarks | None) -> None:
    """Copy the marks of a session to the one that it became here. Those that it has already are left out."""
    if marks is None:
        return
    from turnlog.thread.reader import SessionReader

    reader = SessionReader(appender.history)
    for key, entry in [*marks.facts.items(), *((None, note) for note in marks.notes)]:
        id = f"mark-{entry.id}"
        if reader.find(id) is not None:
            continue
        if isinstance(entry, Note):
            appender.append([Note(id=id, text=entry.text, at=entry.at)])
        elif key is not None and key.startswith(_TAG):
            tags: Any = appender.state.wide.get("tags")
            before: list[str] = [str(tag) for tag in tags] if isinstance(tags, list) else []  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
            after = ForeignMarks(facts={key: entry}).tags(before)
            appender.set(Set(id=id, key="tags", value=after))
        elif key in ("title", "archived"):
            appender.set(Set(id=id, key=key, value=entry.value))
