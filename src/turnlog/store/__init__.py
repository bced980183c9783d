"""Stores: where logs and blobs are kept. A store does not interpret either.

The contract is `Logs`, `Blobs` and `Log` below; `turnlog.testing.StoreContract` tests it. `derived` has the functions
that work with every store; `capability` has what only some stores can do. Each folder is one store, selected by the
scheme of a location in `machine` and opened by its `connect(location, …)`. `memory` is the example for a new store.
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
from turnlog.log.entry import AnyEntry
from turnlog.log.part import Fork
from turnlog.log.written import WrittenLine
from turnlog.store.listing import Listed

IMPORTED = "import-"
"""The prefix of the derived data that an import stores about its source."""
Clock = Callable[[], int]
"""Returns the time in milliseconds since 1970."""


def now_ms() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def in_order(drafts: list[Draft], known: Mapping[str, AnyEntry], new: list[AnyEntry]) -> list[AnyEntry]:
    """Return the result of an append: for each draft, the entry that was already in the log, or the next new one."""
    rest = iter(new)
    return [known[draft.id] if draft.id in known else next(rest) for draft in drafts]


class Log(Protocol):
    """The log of one session."""

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
        later (`alone`: any draft raises it if any entry came later). Other entries are just appended. The parent of the
        first node is `head`, that of each further node the one before. For drafts whose ids are already in the log, the
        existing entries are returned (`once`: `AlreadyExists` is raised); the others are the batch.
        """
        ...

    def sync(self, seq: int) -> None:
        """Make entry `seq` and all entries before it durable before this returns."""
        ...

    def read(self, *, after: int = 0, before: int | None = None, reverse: bool = False) -> Iterator[AnyEntry | Damage]:
        """Yield entries with `after < seq < before`, and the damage between them."""
        ...

    def lines(self, *, after: int = 0) -> Iterator[WrittenLine | Damage]:
        """Yield entries after `after` with their bare lines, oldest first, and damage: for another copy of this log."""
        ...

    def wait(self, seq: int, *, seconds: float = 0) -> bool:
        """Whether there may be entries after `seq`. False is certain.

        Waits up to `seconds` first; a notification, `close` or nothing at all may end the wait early.
        """
        ...

    def close(self) -> None:
        """Release the resources of the log. It may be used again."""
        ...


class OpenFile(Struct, frozen=True):
    """The next `size` bytes of an open file, or as many as there are. Errors of the file are raised as `OSError`."""

    fd: int
    size: int

    def pieces(self, most: int = 1 << 20) -> Iterator[bytes]:
        """Yield the bytes in pieces of `most` bytes; only the last piece is shorter."""
        left = self.size
        while left > 0 and (piece := os.read(self.fd, min(left, most))):
            while len(piece) < min(left, most) and (more := os.read(self.fd, min(left, most) - len(piece))):
                piece += more
            left -= len(piece)
            yield piece


class Freed(Struct, frozen=True):
    """The blobs that a collection removed."""

    blobs: int = 0
    size_bytes: int = 0


Place = Literal["live", "deleted", "aside"]
"""The place of a log: a session, a deleted session, or the part of a purged session that forks need."""
AddBlob = Callable[[bytes | OpenFile], str]
"""Adds one blob to a batch, and returns its digest."""


class Logs(Protocol):
    """Logs by the ids of their sessions."""

    def create(self, session_id: str, drafts: list[Draft], *, seq: int = 1, parent: Fork | None = None) -> Log:
        """Create a log with these first entries, numbered from `seq`. Raises `AlreadyExists`.

        The id is taken if it is in use, or if a deleted or kept-aside log with that id has the same first entry. The id
        of any other deleted session may be reused. `parent` must still have its entry when the new log appears.
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
        """Append bare lines of another copy of a log unchanged, after entry `after`; durable when this returns.

        The log is the one that `open` reads: a session, a deleted one, or the part of a purged one that is kept aside,
        which becomes a session again (not if `deleted`). Raises `Conflict` if the log does not end with `after`. With
        0, a new log is created, or `AlreadyExists` is raised. With `deleted`, the new log is a deleted session; it is
        kept aside if another deleted session has the same id. `parent` as in `create`. A batch must be passed whole; if
        there are several, a crash may leave only the first ones.
        """
        ...

    def open(self, session_id: str, *, read_only: bool = False, first: str | None = None) -> Log:
        """Open a session's log for reading and writing. Raises `NotFound`.

        With `read_only`, a session that was deleted, or purged and kept aside for its forks, can be opened too. With
        `first`, the log must have that id as the id of its first entry.
        """
        ...

    def listing(self, place: Place = "live", *, ids: Collection[str] | None = None) -> Iterator[Listed]:
        """Yield every log in that place, or those with these `ids` that exist, in no order."""
        ...

    def delete(self, session_id: str, *, after: int | None = None) -> None:
        """Move a session to the trash. Raises `AlreadyExists` if a deleted session has that id.

        `after` is the last entry that the caller has seen: raises `Conflict` if the log does not end with it.
        """
        ...

    def restore(self, session_id: str) -> None:
        """Restore a deleted session. Raises `AlreadyExists` if another session has its id by now."""
        ...

    def purge(self, session_id: str, *, deleted: bool | None = None, after: int | None = None) -> None:
        """Remove a session or a deleted session for good; the part that its forks need is kept aside.

        That part ends with the entry that the last fork begins after, and the rest of that entry's batch.
        Without `deleted`, either may have the id; raises `Ambiguous` if both have. `after` as in `delete`.
        """
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


class Blobs(Protocol):
    """Blobs by their digests."""

    def add(self, *, progress: Callable[[int], None] | None = None) -> AbstractContextManager[AddBlob]:
        """Add blobs as one batch: `with store.add() as add`, and then `add(data)` for each.

        When the block ends without an error, all of them are stored and durable; after an error, none is. Blobs that
        are already stored take no space. After each blob, `progress` is called with the size of the batch so far, and
        may raise.
        """
        ...

    def get(self, digest: str) -> bytes:
        """Return a blob, verified. Raises `NotFound` or `Corrupt`."""
        ...

    def has(self, digest: str) -> bool:
        """Whether a blob is stored. Blobs that were found inside `add` are as durable as the batch when that ends."""
        ...

    def stream(self, digest: str) -> Iterator[bytes]:
        """Yield a blob piece by piece; raises `Corrupt` at the end if the content does not match the digest."""
        ...

    def keeping(self) -> AbstractContextManager[object]:
        """Block collections: from checking which blobs exist until an entry refers to them."""
        ...

    def collect(
        self,
        find: Callable[[], Container[str]],
        *,
        expected: Container[str] | None = None,
        strictly: bool = False,
    ) -> Freed:
        """Remove every blob that is not needed.

        `find` returns the needed blobs. It is called while `keeping` is locked exclusively (the calling thread may
        re-enter), so it must be quick. `expected` is its result a moment earlier, without that lock: slow work may be
        prepared with it. Space that is expensive to free may be left to a later collection, unless `strictly`; packs
        that damage makes unreadable stay in either case.
        """
        ...


class Store(Logs, Blobs, Protocol):
    """Logs and blobs together."""

    @property
    def backend(self) -> str:
        """The name of this kind of store."""
        ...
