"""A session as a listing sees it, and the places in a listing."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from datetime import datetime
from itertools import dropwhile
from typing import NamedTuple

from msgspec import Struct

from turnlog.log.draft import to_ms
from turnlog.log.entry import AnyEntry, Set, Start
from turnlog.log.ids import handle_of

_CURSOR = "~"


class Listed(Struct, frozen=True):
    """A session as a listing sees it: its first line, its newest session-wide facts, its last line."""

    id: str
    start: Start | None
    """None where the first line cannot be read."""
    wide: Set | None
    last: AnyEntry | None
    size_bytes: int
    deleted_at: datetime | None = None
    """When it came into the trash, as far as the store knows."""

    @property
    def first(self) -> str:
        """The id of its first entry, which tells it from others that have or had the same id."""
        return self.start.id if self.start is not None else self.id

    @property
    def order(self) -> ListingCursor:
        """The newer, the greater; where the last entries are of one moment, the id decides."""
        return cursor_of(self.last.at if self.last is not None else None, self.id)


class ListingCursor(NamedTuple):
    """A place in a listing: that of a session which was last written to at that time, whatever became of it."""

    at_ms: int
    id: str

    def __str__(self) -> str:
        text = f"{self.at_ms} {self.id}".encode("utf-8", "surrogatepass")
        return _CURSOR + urlsafe_b64encode(text).decode().rstrip("=")

    @classmethod
    def of(cls, text: str) -> ListingCursor | None:
        """The place that a text stands for; None if no cursor reads like that."""
        try:
            data = text.removeprefix(_CURSOR)
            whole = urlsafe_b64decode(data + "=" * (-len(data) % 4)).decode("utf-8", "surrogatepass")
            at, _, name = whole.partition(" ")
            cursor = cls(int(at), name)
        except ValueError:
            return None
        return cursor if str(cursor) == text else None


def cursor_of(at: datetime | None, session_id: str) -> ListingCursor:
    """The place of a session in a listing."""
    return ListingCursor(0 if at is None else to_ms(at), session_id)


def is_like(session_id: str, like: str) -> bool:
    """Whether an id, or its handle, begins like this."""
    return session_id.startswith(like) or handle_of(session_id).startswith(like)


def behind(rows: Iterator[Listed], after: ListingCursor | None) -> Iterator[Listed]:
    """The rest of a listing, behind that place."""
    return rows if after is None else dropwhile(lambda one: one.order >= after, rows)
