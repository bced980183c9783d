"""A session that gets a title, tags or notes: ours, or another agent's, which is not changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from turnlog.errors import Conflict
from turnlog.log.entry import Note, Set
from turnlog.session.interior import interior
from turnlog.thread.home.foreignmarks import (
    ForeignMarks,
    append_marks,
    checked_note,
    mark_archived,
    mark_note,
    mark_tag,
    mark_title,
    marks_in,
)  # fmt: skip

if TYPE_CHECKING:
    from turnlog.catalog import Card
    from turnlog.session import Home, Session


class MarkableSession(Protocol):
    """A session that people can say something of."""

    @property
    def id(self) -> str:
        """Our id of it; `agent:id` of another agent's."""
        ...

    @property
    def name(self) -> str:
        """What to type for it."""
        ...

    @property
    def title(self) -> str | None:
        """The title of the session."""
        ...

    @property
    def tags(self) -> list[str]:
        """The tags of the session."""
        ...

    @property
    def archived(self) -> bool:
        """Whether listings leave it out."""
        ...

    @property
    def notes(self) -> list[Note]:
        """What people are to read with it, the oldest first."""
        ...

    def set_title(self, title: str | None) -> None:
        """Set the title; None removes it, which restores the agent's own."""
        ...

    def tag(self, tags: Iterable[str], *, is_on: bool) -> list[str]:
        """Add or remove tags. Returns the tags afterwards. Concurrent changes by others stay."""
        ...

    def archive(self, is_archived: bool) -> None:
        """Hide the session from listings, or show it again."""
        ...

    def note(self, text: str) -> None:
        """Add a note for people; models do not see it."""
        ...


class OwnMarkable:
    """A session of ours: the marks are in its log. See `MarkableSession`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def id(self) -> str:
        """See `MarkableSession`."""
        return self._session.id

    @property
    def name(self) -> str:
        """See `MarkableSession`."""
        return self._session.handle

    @property
    def title(self) -> str | None:
        """See `MarkableSession`."""
        return self._session.title

    @property
    def tags(self) -> list[str]:
        """See `MarkableSession`."""
        tags: Any = self._session.facts.get("tags")
        return [str(tag) for tag in tags] if isinstance(tags, list) else []  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]

    @property
    def archived(self) -> bool:
        """See `MarkableSession`."""
        return bool(self._session.facts.get("archived"))

    @property
    def notes(self) -> list[Note]:
        """See `MarkableSession`."""
        return [entry for entry in self._session.entries() if isinstance(entry, Note)]

    def set_title(self, title: str | None) -> None:
        """See `MarkableSession`."""
        if title is None:
            self._session.unset("title")
        elif self._session.title != title:
            self._session.set("title", title)

    def tag(self, tags: Iterable[str], *, is_on: bool) -> list[str]:
        """See `MarkableSession`."""
        wanted = list(dict.fromkeys(tags))
        while True:
            change = _TagChange(self.tags, wanted, is_on=is_on)
            if not change.changed:
                return change.after
            try:
                self._session.append(Set(key="tags", value=change.after), alone=True)
                return change.after
            except Conflict:
                self._session.refresh()  # another writer appended something, perhaps tags

    def archive(self, is_archived: bool) -> None:
        """See `MarkableSession`."""
        if self.archived != is_archived:
            self._session.set("archived", is_archived)

    def note(self, text: str) -> None:
        """See `MarkableSession`."""
        self._session.note(checked_note(text))


class ForeignMarkable:
    """Another agent's session: the marks are in the home. See `MarkableSession`."""

    def __init__(self, home: Home, card: Card) -> None:
        self._home = home
        self._card = card

    @property
    def id(self) -> str:
        """See `MarkableSession`."""
        return f"{self._card.agent}:{self._card.id}"

    @property
    def name(self) -> str:
        """See `MarkableSession`."""
        return self.id

    @property
    def _marks(self) -> ForeignMarks:
        """The marks in the home: a card may be stale."""
        return marks_in(interior(self._home).store).get(self.id) or ForeignMarks()

    @property
    def title(self) -> str | None:
        """See `MarkableSession`."""
        return self._marks.title or self._card.title

    @property
    def tags(self) -> list[str]:
        """See `MarkableSession`."""
        return self._marks.tags(self._card.tags)

    @property
    def archived(self) -> bool:
        """See `MarkableSession`."""
        is_marked = self._marks.archived
        return self._card.archived if is_marked is None else is_marked

    @property
    def notes(self) -> list[Note]:
        """See `MarkableSession`."""
        return self._marks.notes

    def set_title(self, title: str | None) -> None:
        """See `MarkableSession`."""
        self._append(mark_title(self.id, title))

    def tag(self, tags: Iterable[str], *, is_on: bool) -> list[str]:
        """See `MarkableSession`."""
        change = _TagChange(self.tags, list(dict.fromkeys(tags)), is_on=is_on)
        if change.changed:
            self._append(*(mark_tag(self.id, tag, is_on) for tag in change.changed))
        return change.after

    def archive(self, is_archived: bool) -> None:
        """See `MarkableSession`."""
        self._append(mark_archived(self.id, is_archived))

    def note(self, text: str) -> None:
        """See `MarkableSession`."""
        self._append(mark_note(self.id, text))

    def _append(self, *marks: Note | Set) -> None:
        append_marks(interior(self._home).creator, *marks)


class _TagChange:
    """The tags that change, and all tags afterwards."""

    def __init__(self, before: list[str], wanted: list[str], *, is_on: bool) -> None:
        self.changed = [tag for tag in wanted if (tag in before) != is_on]
        self.after = [*before, *self.changed] if is_on else [tag for tag in before if tag not in self.changed]
