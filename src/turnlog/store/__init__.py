"""Where logs and blobs live. A store keeps both and knows nothing of their meaning.

The contract is `Logs`, `Blobs` and `Log` below; `turnlog.testing.StoreContract` proves it. What follows from it is in
`derived`, once for every store; what only some stores can do is in `capability`. Each folder is one store, found by
the scheme of a location in `machine`: its `connect(location, …)` gives it. The one in `memory` is the one to copy.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from msgspec import Struct

from turnlog.log.codec import Damage
from turnlog.log.draft import Draft
from turnlog.log.entry import AnyEntry, Fork
from turnlog.log.written import WrittenLine
from turnlog.store.listing import Listed

IMPORTED = "import-"
"""The prefix, among derived data, of what an import remembers of its source."""
Clock = Callable[[], int]
"""Milliseconds since 1970."""


def now_ms() -> int:
    """The time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


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

        Waits up to `seconds` first; a notification, `close` or nothing at all may end the wait early.
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
        """Its bytes, in pieces of `most`; only the last one is shorter."""
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
AddBlob = Callable[[bytes | OpenFile], str]
"""Takes one blob into a batch, and returns its digest."""


class Logs(Protocol):
    """Logs by the ids of their sessions."""

    def create(self, session_id: str, drafts: list[Draft], *, seq: int = 1, parent: Fork | None = None) -> Log:
        """A new log with these first entries, counted from `seq`. Raises `AlreadyExists`.

        It does if the id is in use, or if a deleted or kept-aside log of that id has the same first entry. The id of
        any other deleted session may be reused. `parent` must still be there when the new log is.
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
        log, or `AlreadyExists`. With `deleted` the new log is a deleted one; it is kept aside if another deleted one
        has the same id. `parent` as in `create`. A batch is handed over whole; of several, a crash may leave the first
        ones.
        """
        ...

    def open(self, session_id: str, *, read_only: bool = False, first: str | None = None) -> Log:
        """A session's log, for reading and writing. Raises `NotFound`.

        With `read_only` also one that was deleted, or purged and kept aside for its forks. `first` is the id of its
        first entry: no other session of that id will do.
        """
        ...

    def listing(self, place: Place = "live", *, ids: Collection[str] | None = None) -> Iterator[Listed]:
        """Every log in that place, or those of these `ids` that there are, in no order."""
        ...

    def delete(self, session_id: str, *, after: int | None = None) -> None:
        """Put a session into the trash, to be restored. Raises `AlreadyExists` if a deleted one has that id.

        `after` is the last entry that the caller has seen: `Conflict` if it does not end with that.
        """
        ...

    def restore(self, session_id: str) -> None:
        """Bring back a deleted session. Raises `AlreadyExists` if another one has its id by now."""
        ...

    def purge(self, session_id: str, *, deleted: bool | None = None, after: int | None = None) -> None:
        """Remove a session for good, or a deleted one; the part that forks of it need is kept aside.

        Without `deleted`, it is the one that has that id; `Ambiguous` if there are both. `after` as in `delete`.
        """
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class Blobs(Protocol):
    """Contents by their digests."""

    def add(self, *, progress: Callable[[int], None] | None = None) -> AbstractContextManager[AddBlob]:
        """Keep many blobs as one batch: `with store.add() as add`, and then `add(data)` for each.

        They are there, all of them and durable, when the block ends without an error; none is if there is one. Those
        that are there already cost nothing. After each, `progress` is called with the bytes that the batch takes by
        now, and may raise.
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

        `find` says what is. It is called while `keeping` is locked exclusively (the calling thread may re-enter), so it
        must be quick. `expected` is its answer of a moment before, without that lock: what takes long may be done for
        that first. Space that costs more to be given back than it is
        worth may be left to a later collection, unless `strictly`; what damage keeps here stays in either case.
        """
        ...


class Store(Logs, Blobs, Protocol):
    """Logs and blobs in one place."""

    @property
    def backend(self) -> str:
        """The name of the kind of store."""
        ...
