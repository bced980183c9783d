"""A session that gets a title, tags or notes: ours, or another agent's, which is not changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

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


class MarkableSession:
    """One of ours (`session`), or another agent's (`card`), whose marks are in the home."""

    def __init__(self, home: Home, session: Session | None, card: Card | None = None) -> None:
        self._home = home
        self._session = session
        self._card = card

    @property
    def id(self) -> str:
        """Our id of it; `agent:id` of another agent's."""
        return self._session.id if self._session is not None else self._foreign_name

    @property
    def name(self) -> str:
        """What to type for it."""
        return self._session.handle if self._session is not None else self._foreign_name

    @property
    def _foreign_name(self) -> str:
        assert self._card is not None
        return f"{self._card.agent}:{self._card.id}"

    @property
    def _marks(self) -> ForeignMarks:
        """The marks of another agent's session in the home: a card may be stale."""
        return marks_in(interior(self._home).store).get(self._foreign_name) or ForeignMarks()

    @property
    def title(self) -> str | None:
        """The title of the session."""
        if self._session is not None:
            return self._session.title
        return self._marks.title or (self._card and self._card.title)

    @property
    def tags(self) -> list[str]:
        """The tags of the session."""
        if self._session is not None:
            tags: Any = self._session.facts.get("tags")
            return [str(tag) for tag in tags] if isinstance(tags, list) else []  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
        return self._marks.tags(self._card.tags if self._card is not None else ())

    @property
    def archived(self) -> bool:
        """Whether listings leave it out."""
        if self._session is not None:
            return bool(self._session.facts.get("archived"))
        is_marked = self._marks.archived
        return is_marked if is_marked is not None else self._card is not None and self._card.archived

    @property
    def notes(self) -> list[Note]:
        """What people are to read with it, the oldest first."""
        if self._session is not None:
            return [entry for entry in self._session.entries() if isinstance(entry, Note)]
        return self._marks.notes

    def set_title(self, title: str | None) -> None:
        """Set the title; None removes it, which restores the agent's own."""
        if self._session is None:
            append_marks(interior(self._home).creator, mark_title(self._foreign_name, title))
        elif title is None:
            self._session.unset("title")
        elif self._session.title != title:
            self._session.set("title", title)

    def tag(self, tags: Iterable[str], *, is_on: bool) -> list[str]:
        """Add or remove tags. Returns the tags afterwards. Concurrent changes by others stay."""
        wanted = list(dict.fromkeys(tags))
        while True:
            before = self.tags
            changed = [tag for tag in wanted if (tag in before) != is_on]
            after = [*before, *changed] if is_on else [tag for tag in before if tag not in changed]
            if not changed:
                return after
            if self._session is None:
                append_marks(
                    interior(self._home).creator, *(mark_tag(self._foreign_name, tag, is_on) for tag in changed)
                )
                return after
            try:
                self._session.append(Set(key="tags", value=after), alone=True)
                return after
            except Conflict:
                self._session.refresh()  # another writer appended something, perhaps tags

    def archive(self, is_archived: bool) -> None:
        """Hide the session from listings, or show it again."""
        if self._session is None:
            append_marks(interior(self._home).creator, mark_archived(self._foreign_name, is_archived))
        elif self.archived != is_archived:
            self._session.set("archived", is_archived)

    def note(self, text: str) -> None:
        """Add a note for people; models do not see it."""
        if self._session is None:
            append_marks(interior(self._home).creator, mark_note(self._foreign_name, text))
        else:
            self._session.note(checked_note(text))
