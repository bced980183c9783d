"""Where logs and blobs live. A store keeps both and knows nothing of their meaning.

The contract is the two protocols below; `turnlog.testing.StoreContract` proves it. Every other file here is one
store, found by its name: `connect(location, …)` gives the store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from turnlog.errors import AlreadyExists, Ambiguous, NotFound
from turnlog.log.codec import Damage
from turnlog.log.draft import Draft
from turnlog.log.entry import AnyEntry, Fork, Set, Start
from turnlog.log.ids import handle_of
from turnlog.log.written import WrittenLine

if TYPE_CHECKING:
    from typing import Self

Clock = Callable[[], int]
"""Milliseconds since 1970."""


class Listed(Struct, frozen=True):
    """A session as a listing sees it: its first line, its newest session-wide facts, its last line."""

    id: str
    start: Start | None
    """None where the first line cannot be read."""
    wide: Set | None
    last: AnyEntry | None
    size_bytes: int

    @property
    def first(self) -> str:
        """The id of its first entry, which tells it from others that are or were called the same."""
        return self.start.id if self.start is not None else self.id

    @property
    def order(self) -> tuple[float, str]:
        """The newer, the greater; where the last entries are of one moment, the id decides."""
        at = self.last.at if self.last is not None else None
        return (at.timestamp() if at is not None else 0.0, self.id)


def is_like(session_id: str, like: str) -> bool:
    """Whether an id, or its handle, begins like this."""
    return session_id.startswith(like) or handle_of(session_id).startswith(like)


def behind(found: Iterator[Listed], after: str | None) -> Iterator[Listed]:
    """The rest of a listing, behind that session."""
    if after is not None and not any(one.id == after for one in found):
        raise NotFound(f"no session {after!r} in this listing", hint="list again from the beginning")
    return found


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
        hangs on `head`, each further one on the one before. Drafts whose ids are all in the log already are
        answered with what is there (`once`: `AlreadyExists`).
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


class Pack(Protocol):
    """Blobs on their way into a store; there, all of them, when its `with` block ends without an error."""

    @property
    def name(self) -> str:
        """What `Store.packs` calls it by then; empty if nothing was new, or it has no name of its own."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def add(self, data: bytes) -> str:
        """Keep these bytes; returns their digest."""
        ...

    def add_file(self, fd: int, size: int) -> str:
        """Keep the next `size` bytes of an open file, or as many as there are; returns their digest.

        Errors of that file are `OSError`s.
        """
        ...

    def has(self, digest: str) -> bool:
        """Whether a blob will be there once this is."""
        ...

    @property
    def size_bytes(self) -> int:
        """How much it takes by now; what the store had already takes nothing."""
        ...


class Store(Protocol):
    """Logs and blobs in one place."""

    @property
    def backend(self) -> str:
        """The name of the kind of store."""
        ...

    @property
    def portion(self) -> int:
        """How many bytes of lines it had best be given at once for a new log."""
        ...

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

        The log is that of `base`: a session, a deleted one, or what is kept aside of a purged one, which is a session
        again then (not if `deleted`). Raises `Conflict` if it does not end with `after`. After 0 it is a new log, or
        `AlreadyExists`; deleted from the beginning if told so, kept aside where another deleted one is called the same;
        `parent` as in `create`. A batch is handed over whole; of several, a crash may leave the first ones.
        """
        ...

    def open(self, session_id: str) -> Log:
        """A log, for reading and writing. Raises `NotFound`."""
        ...

    def base(self, session_id: str, first: str | None = None) -> Log:
        """A log for reading only, also if it was deleted, or purged and kept aside for its forks.

        `first` is the id of its first entry: no other session that is called so will do.
        """
        ...

    def ids(self, *, like: str = "", deleted: bool = False) -> Iterable[str]:
        """The ids of all sessions (or deleted ones) that begin like this, or whose handle does, in no order."""
        ...

    def all_logs(self) -> Iterator[Log]:
        """Every log for reading: of sessions, of deleted ones, and what is kept aside for forks."""
        ...

    def sessions(self, *, deleted: bool = False, ids: Collection[str] | None = None) -> Iterator[Listed]:
        """Every session (or every deleted one), or those of these `ids` that there are, in no order."""
        ...

    def newest(self, *, deleted: bool = False, after: str | None = None) -> Iterator[Listed]:
        """The same in their `order`, the newest first: who stops early has not paid for the rest.

        `after` is the session to begin behind; raises `NotFound`. One that grows meanwhile may be missed.
        """
        ...

    def delete(self, session_id: str) -> None:
        """Put a session aside, so that it can be restored. Raises `AlreadyExists` if one is there that is called so."""
        ...

    def restore(self, session_id: str) -> None:
        """Bring back a deleted session. Raises `AlreadyExists` if another one is called so by now."""
        ...

    def purge(self, session_id: str, *, deleted: bool | None = None) -> None:
        """Remove a session for good, or a deleted one; the part that forks of it need is kept aside.

        Told neither, it is the one that is called so; `Ambiguous` if there are both.
        """
        ...

    def put(self, blobs: dict[str, bytes]) -> None:
        """Keep blobs, durable when this returns. Those that are there already cost nothing."""
        ...

    def get(self, digest: str) -> bytes:
        """A blob, verified. Raises `NotFound` or `Corrupt`."""
        ...

    def has(self, digest: str) -> bool:
        """Whether a blob is there."""
        ...

    def lacking(self, digests: Iterable[str]) -> set[str]:
        """Those blobs of these that are not there."""
        ...

    def pack(self, *, beside: frozenset[str] | None = None) -> Pack:
        """Room for many blobs at once: `with store.pack() as pack`.

        `beside` is what `packs` said inside the same `keeping`, so that nobody has to look again.
        """
        ...

    def packs(self) -> frozenset[str]:
        """Names of what holds the blobs. While all of them are still there, so is every blob that was."""
        ...

    def stream(self, digest: str) -> Iterator[bytes]:
        """A blob piece by piece; raises `Corrupt` at its end if it is not what it should be."""
        ...

    def keeping(self) -> AbstractContextManager[object]:
        """No blob is collected inside: from finding out what is there until an entry refers to it."""
        ...

    def exclusively(self) -> AbstractContextManager[object]:
        """Nobody is inside `keeping`, and nobody gets there."""
        ...

    def doubt(self) -> str:
        """Why nobody can say for sure which blobs there are; empty if everybody can."""
        ...

    def forget(self, digests: Collection[str]) -> set[str]:
        """Remove these blobs and no other; returns those that damage around them keeps here.

        The caller is inside `exclusively`. They are gone when this returns, so what goes next is never missed by them.
        """
        ...

    def prepare(self, needed: Container[str]) -> None:
        """Do what takes `collect` long and keeps nobody out. The caller is inside `keeping`."""
        ...

    def collect(self, needed: Container[str]) -> dict[str, int]:
        """Remove every blob that is not needed. The caller found that out, and is, inside `exclusively`."""
        ...

    def unneeded(self, needed: Container[str]) -> dict[str, int]:
        """How many `blobs` and `bytes` a collection would remove, about."""
        ...

    def disk(self) -> dict[str, int]:
        """How many bytes logs, deleted logs and blobs take."""
        ...

    def derived(self, name: str) -> bytes:
        """Something that can be made again, as it was last kept; empty if it was not."""
        ...

    def keep_derived(self, name: str, data: bytes) -> None:
        """Keep something that can be made again. Losing it is no loss."""
        ...

    def own_folders(self) -> frozenset[tuple[int, int]]:
        """Device and inode of folders that belong to the store, so that nobody takes them for somebody's work."""
        ...

    def health(self) -> dict[str, Any]:
        """What a person or a monitor wants to know; `ok` says whether it works."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...
