"""Where logs and blobs live. A store keeps both and knows nothing of their meaning.

The contract is `Logs`, `Blobs` and `Log` below; `turnlog.testing.StoreContract` proves it. What follows from it is in
`derived`, once for every store; what only some stores can do is in `capability`. Each folder is one store, found by
the scheme of a location in `machine`: its `connect(location, …)` gives it. The one in `memory` is the one to copy.
"""

from __future__ import annotations

import os
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from itertools import dropwhile
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from turnlog.errors import AlreadyExists, Ambiguous, Conflict, NotFound
from turnlog.log.codec import Damage
from turnlog.log.draft import Draft, to_ms
from turnlog.log.entry import AnyEntry, Fork, Set, Start
from turnlog.log.ids import handle_of
from turnlog.log.written import WrittenLine

IMPORTED = "import-"
"""How the names of what an import has to know of its source begin, among what is derived."""
_CURSOR = "~"
Clock = Callable[[], int]
"""Milliseconds since 1970."""


def now_ms() -> int:
    """The time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


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
        """The id of its first entry, which tells it from others that are or were called the same."""
        return self.start.id if self.start is not None else self.id

    @property
    def order(self) -> ListingCursor:
        """The newer, the greater; where the last entries are of one moment, the id decides."""
        return place_of(self.last.at if self.last is not None else None, self.id)


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


def place_of(at: datetime | None, session_id: str) -> ListingCursor:
    """Where a session stands in a listing."""
    return ListingCursor(0 if at is None else to_ms(at), session_id)


def is_like(session_id: str, like: str) -> bool:
    """Whether an id, or its handle, begins like this."""
    return session_id.startswith(like) or handle_of(session_id).startswith(like)


def behind(rows: Iterator[Listed], after: ListingCursor | None) -> Iterator[Listed]:
    """The rest of a listing, behind that place."""
    return rows if after is None else dropwhile(lambda one: one.order >= after, rows)


def no_session(session_id: str, *, for_fork: bool = False, is_deleted: bool = False) -> NotFound:
    """There is no session that is called so; or none that a fork can build on."""
    if for_fork:
        gone = f"session {session_id!r}, which a fork builds on, is gone"
        return NotFound(gone, hint="look with `turnlog doctor`")
    hint = "it was deleted; home.restore brings it back" if is_deleted else "see `turnlog ls`"
    return NotFound(f"no session {session_id!r}", hint=hint)


def no_tenant(name: str) -> NotFound:
    """There is no tenant of that name, or no longer."""
    return NotFound(f"no tenant {name!r:.80}", hint="home.tenants() has those there are; home.tenant() makes one")


def taken(session_id: str) -> AlreadyExists:
    """There is a session that is called so."""
    return AlreadyExists(
        f"there is a session {session_id!r} already",
        hint="resume it, or choose another id; `turnlog restore --as` restores a deleted one under another",
    )


def in_trash(session_id: str) -> AlreadyExists:
    """There is a deleted session that is called so."""
    return AlreadyExists(
        f"a deleted session is called {session_id!r}, too",
        hint="restore that one under another id with `turnlog restore --as`, or purge it",
    )


def either(session_id: str) -> Ambiguous:
    """There are both."""
    return Ambiguous(
        f"there is a session {session_id!r}, and a deleted one",
        hint="deleted=True, or `turnlog rm --purge --deleted`, is for the one in the trash",
    )


def refuse_longer(session_id: str, last: int, after: int | None) -> None:
    """Raise the `Conflict` of who removes a session that has more in it than he has seen."""
    if after is not None and last != after:
        raise Conflict(
            f"session {session_id!r} ends with entry {last}, not {after}",
            hint="look at what came after, and decide again",
        )


def in_order(drafts: list[Draft], known: Mapping[str, AnyEntry], new: list[AnyEntry]) -> list[AnyEntry]:
    """What an append answers: of each draft the entry that is there already, or the next new one."""
    rest = iter(new)
    return [known[draft.id] if draft.id in known else next(rest) for draft in drafts]


class Log(Protocol):
    """One session's log."""

    @property
    def id(self) -> str:
        """The session's id."""
        ...

    def append(
        self,
        drafts: list[Draft],
        *,
        after: int,
        head: int,
        once: bool = False,
        alone: bool = False,
    ) -> list[AnyEntry]:
        """Append a batch, whole or not at all; durable when `sync` of its last entry has returned.

        `after` is the last entry the caller has seen: a node or head raises `Conflict` if another one came
        later (`alone`: anything raises it if anything came later). Other entries just follow. The first node
        hangs on `head`, each further one on the one before. Drafts whose ids are in the log already are answered
        with what is there (`once`: `AlreadyExists`), and the others are the batch.
        """
        ...

    def sync(self, seq: int) -> None:
        """Entry `seq` and all before it are durable when this returns."""
        ...

    def read(self, *, after: int = 0, before: int | None = None, reverse: bool = False) -> Iterator[AnyEntry | Damage]:
        """Entries with `after < seq < before`, and the damage met on the way."""
        ...

    def lines(self, *, after: int = 0) -> Iterator[WrittenLine | Damage]:
        """Entries after `after` with their bare lines, oldest first, and the damage: for another copy of this log."""
        ...

    def wait(self, seq: int, *, seconds: float = 0) -> bool:
        """Whether there may be entries after `seq`; never wrong when it says no.

        Before it looks it waits about so long, or until it hears of news, or until `close`; or it ends for nothing.
        """
        ...

    def close(self) -> None:
        """Let go of what the log holds open. It may be used again."""
        ...


class OpenFile(Struct, frozen=True):
    """The next `size` bytes of an open file, or as many as there are. Errors of that file are `OSError`s."""

    fd: int
    size: int

    def pieces(self, most: int = 1 << 20) -> Iterator[bytes]:
        """Its bytes, in pieces of so many; only the last one is shorter."""
        left = self.size
        while left > 0 and (piece := os.read(self.fd, min(left, most))):
            while len(piece) < min(left, most) and (more := os.read(self.fd, min(left, most) - len(piece))):
                piece += more
            left -= len(piece)
            yield piece


class Freed(Struct, frozen=True):
    """What a collection removed."""

    blobs: int = 0
    size_bytes: int = 0


Place = Literal["live", "deleted", "aside"]
"""Where a log is: a session, a deleted one, or what is kept of a purged one because forks need it."""
Adding = Callable[[bytes | OpenFile], str]
"""Takes one blob into a batch, and returns its digest."""


class Logs(Protocol):
    """Logs by the ids of their sessions."""

    def create(self, session_id: str, drafts: list[Draft], *, seq: int = 1, parent: Fork | None = None) -> Log:
        """A new log with these first entries, counted from `seq`. Raises `AlreadyExists`.

        That is where a session is called so, or a log of that name is in the trash or kept aside whose first entry has
        the same id: a deleted session's id may be used again, and a log is there once. `parent` is what must still be
        there when the new one is.
        """
        ...

    def adopt(
        self,
        session_id: str,
        lines: list[bytes],
        *,
        after: int,
        first: str | None = None,
        parent: Fork | None = None,
        deleted: bool = False,
    ) -> None:
        """Append bare lines of another copy of a log just as they are, behind entry `after`; durable when this returns.

        The log is what `open` reads: a session, a deleted one, or what is kept aside of a purged one, which is a
        session again then (not if `deleted`). Raises `Conflict` if it does not end with `after`. After 0 it is a new
        log, or `AlreadyExists`; deleted from the beginning if told so, kept aside where another deleted one is called
        the same; `parent` as in `create`. A batch is handed over whole; of several, a crash may leave the first ones.
        """
        ...

    def open(self, session_id: str, *, read_only: bool = False, first: str | None = None) -> Log:
        """A session's log, for reading and writing. Raises `NotFound`.

        With `read_only` also one that was deleted, or purged and kept aside for its forks. `first` is the id of its
        first entry: no other session that is called so will do.
        """
        ...

    def listing(self, place: Place = "live", *, ids: Collection[str] | None = None) -> Iterator[Listed]:
        """Every log in that place, or those of these `ids` that there are, in no order."""
        ...

    def delete(self, session_id: str, *, after: int | None = None) -> None:
        """Put a session aside, so that it can be restored. Raises `AlreadyExists` if one is there that is called so.

        `after` is the last entry that the caller has seen: `Conflict` if it does not end with that.
        """
        ...

    def restore(self, session_id: str) -> None:
        """Bring back a deleted session. Raises `AlreadyExists` if another one is called so by now."""
        ...

    def purge(self, session_id: str, *, deleted: bool | None = None, after: int | None = None) -> None:
        """Remove a session for good, or a deleted one; the part that forks of it need is kept aside.

        Told neither, it is the one that is called so; `Ambiguous` if there are both. `after` as in `delete`.
        """
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class Blobs(Protocol):
    """Contents by their digests."""

    def add(self, *, told: Callable[[int], None] | None = None) -> AbstractContextManager[Adding]:
        """Keep many blobs as one batch: `with store.add() as add`, and then `add(data)` for each.

        They are there, all of them and durable, when the block ends without an error; none is if there is one. Those
        that are there already cost nothing. After each, `told` is called with the bytes that the batch takes by now,
        and may raise.
        """
        ...

    def get(self, digest: str) -> bytes:
        """A blob, verified. Raises `NotFound` or `Corrupt`."""
        ...

    def has(self, digest: str) -> bool:
        """Whether a blob is there. What is relied on inside `add` is as durable as the batch when that ends."""
        ...

    def stream(self, digest: str) -> Iterator[bytes]:
        """A blob piece by piece; raises `Corrupt` at its end if it is not what it should be."""
        ...

    def keeping(self) -> AbstractContextManager[object]:
        """No blob is collected inside: from finding out what is there until an entry refers to it."""
        ...

    def collect(
        self,
        find: Callable[[], Container[str]],
        *,
        expected: Container[str] | None = None,
        strictly: bool = False,
    ) -> Freed:
        """Remove every blob that is not needed.

        `find` says what is. It is called once nobody is inside `keeping` (but whoever it calls itself), and nobody
        gets there until what is not needed is gone: so it is short. `expected` is what it said a moment before, beside
        everybody else: what takes long may be done for that first. Space that costs more to be given back than it is
        worth may be left to a later collection, unless `strictly`; what damage keeps here stays in either case.
        """
        ...


class Store(Logs, Blobs, Protocol):
    """Logs and blobs in one place."""

    @property
    def backend(self) -> str:
        """The name of the kind of store."""
        ...
