"""Sessions in listings, and cursors: positions in a listing."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from datetime import datetime
from itertools import dropwhile

from msgspec import Struct

from turnlog.log.draft import to_ms
from turnlog.log.entry import AnyEntry, Set, Start
from turnlog.log.ids import handle_of
from turnlog.log.startup import NamedTuple

_CURSOR = "~"


class Listed(Struct, frozen=True):
    """A session in a listing: its first entry, its newest session-wide facts, its last entry."""

    id: str
    start: Start | None
    """The first entry; None if the first line cannot be read."""
    wide: Set | None
    last: AnyEntry | None
    size_bytes: int
    deleted_at: datetime | None = None
    """When the session was deleted, if the store knows."""

    @property
    def first(self) -> str:
        """The id of the first entry, which is unique even among sessions that have or had the same session id."""
        return self.start.id if self.start is not None else self.id

    @property
    def order(self) -> ListingCursor:
        """The sort key: newer sessions have greater ones; at equal times, the id decides."""
        return cursor_of(self.last.at if self.last is not None else None, self.id)


class ListingCursor(NamedTuple):
    """The position of a session with that id and time of its last entry, even if the session no longer exists."""

    at_ms: int
    id: str

    def __str__(self) -> str:
        text = f"{self.at_ms} {self.id}".encode("utf-8", "surrogatepass")
        return _CURSOR + urlsafe_b64encode(text).decode().rstrip("=")

    @classmethod
    def of(cls, text: str) -> ListingCursor | None:
        """Parse a cursor; None if the text is not a cursor."""
        try:
            data = text.removeprefix(_CURSOR)
            whole = urlsafe_b64decode(data + "=" * (-len(data) % 4)).decode("utf-8", "surrogatepass")
            at, _, name = whole.partition(" ")
            cursor = cls(int(at), name)
        except ValueError:
            return None
        return cursor if str(cursor) == text else None


def cursor_of(at: datetime | None, session_id: str) -> ListingCursor:
    """Return the position of a session in a listing."""
    return ListingCursor(0 if at is None else to_ms(at), session_id)


def is_like(session_id: str, like: str) -> bool:
    """Whether an id or its handle begins with `like`."""
    return session_id.startswith(like) or handle_of(session_id).startswith(like)


def rest_after(rows: Iterator[Listed], after: ListingCursor | None) -> Iterator[Listed]:
    """Yield the rest of a listing after a position."""
    return rows if after is None else dropwhile(lambda one: one.order >= after, rows)
