"""Marks of other agents' sessions: titles, tags and notes, in one session of the home that listings do not show.

Each mark is a fact of its own, or a note, so concurrent processes and homes lose nothing. The session begins with the
same entry in every home, so that push, pull and sync merge its content.
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
    from turnlog.thread.home.creator import Creator

STAR = "star"
"""The tag that stands for a star."""
MOST_NOTE = 4_000
"""The most characters of a note. A note must fit into its line, because payloads cannot be merged."""
_TAG = "tag:"


class ForeignMarks(Struct, frozen=True):
    """The marks of one session. Of two facts with the same name the last one counts."""

    facts: dict[str, Set] = {}
    """By `title`, `archived`, and `tag:` plus the tag, which is True, or False if the tag was removed."""
    notes: list[Note] = []

    @property
    def title(self) -> str | None:
        """The title that was given to the session."""
        fact = self.facts.get("title")
        return fact.value if fact is not None and isinstance(fact.value, str) else None

    @property
    def archived(self) -> bool | None:
        """Whether the session was archived; None if that was never set."""
        fact = self.facts.get("archived")
        return bool(fact.value) if fact is not None else None

    def tags(self, before: Iterable[str] = ()) -> list[str]:
        """The tags of the session, if it had the tags `before` already."""
        tags = {key.removeprefix(_TAG): bool(fact.value) for key, fact in self.facts.items() if key.startswith(_TAG)}
        return [tag for tag in dict.fromkeys([*before, *tags]) if tags.get(tag, True)]


def marks_in(store: Store) -> dict[str, ForeignMarks]:
    """The marks of every session that has some, by `agent:id`."""
    try:
        log = store.open(MARKS, read_only=True)
    except NotFound:
        return {}
    marks: dict[str, ForeignMarks] = {}
    with opened(store, log) as history:
        for entry in _marks(history):
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


def _marks(history: History) -> Iterator[Set | Note]:
    for entry in history.forward(0):
        if isinstance(entry, (Set, Note)) and not entry.void:
            yield history.whole(entry)


def mark_title(name: str, title: str | None) -> Set:
    """The mark that sets the title of a session; None restores its agent's title."""
    key = f"title {name}"
    return Set(key=key, unset=True) if title is None else Set(key=key, value=title)


def mark_archived(name: str, is_archived: bool) -> Set:
    """The mark that archives a session, or takes it out of the archive."""
    return Set(key=f"archived {name}", value=is_archived, exact=True)


def mark_tag(name: str, tag: str, is_on: bool) -> Set:
    """The mark that adds a tag to a session, or removes it."""
    return Set(key=f"{_TAG}{tag} {name}", value=is_on, exact=True)


def mark_note(name: str, text: str) -> Note:
    """A note for people on a session."""
    return Note(text=checked_note(text), data={"session": name})


def checked_note(text: str) -> str:
    """The text of a note, checked: not empty, and short enough to be merged into other homes."""
    if not text.strip() or len(text) > MOST_NOTE:
        raise Invalid(f"a note has 1 to {MOST_NOTE:,} characters, not {len(text):,}")
    return text


def append_marks(creator: Creator, *entries: Set | Note) -> None:
    """Append marks of other agents' sessions; they are durable when this returns."""
    from turnlog.thread.appender import appending  # readers do not load the writing side

    store = creator.store
    try:
        log = store.open(MARKS)
    except NotFound:
        with suppress(AlreadyExists):  # another process created it concurrently
            creator.begin([Start(id=MARKS, hidden=True)]).close()
        log = store.open(MARKS)
    with appending(store, log) as appender:
        appender.append(list(entries))


def copy_marks(appender: Appender, marks: ForeignMarks | None) -> None:
    """Copy the marks of a session to the session it was imported as. Marks that are there already are left out."""
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
