"""What some stores and logs can do beside the contract: imported as `can`, so each is a verb. `ability` asks for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

from msgspec import Struct

from turnlog.log.entry import AnyEntry
from turnlog.log.erasure.content import ErasingPlan, Erasure
from turnlog.store import Blobs, Listed, Log, Logs
from turnlog.store.listing import ListingCursor

if TYPE_CHECKING:
    from turnlog.store.broadcast import Delta, LiveText

_T = TypeVar("_T")


def ability(one: Logs | Blobs | Log, kind: type[_T]) -> _T | None:
    """A store or a log as one that can do this; None if it cannot."""
    return one if isinstance(one, kind) else None


@runtime_checkable
class FindEntry(Protocol):
    """A log that knows where an id is."""

    def find(self, entry_id: str) -> AnyEntry | None:
        """The entry with that id."""
        ...


@runtime_checkable
class VouchIds(Protocol):
    """A log that has to look through all of itself for an id that another process may have written."""

    def vouch(self, ids: frozenset[str]) -> None:
        """The caller vouches that none of these ids is in the log as it has read it.

        So an `alone` append need not look for them.
        """
        ...


@runtime_checkable
class StampLog(Protocol):
    """A log that knows whether it is still the same."""

    def stamp(self) -> object:
        """A value that changes whenever the log changes."""
        ...


@runtime_checkable
class TellNews(Protocol):
    """A log that can notify of new entries."""

    def listen(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Have `tell` called, on any thread, when there may be new entries, until what this returns is called.

        A call may be spurious, and a call may be missing: the caller looks for itself from time to time.
        """
        ...


class Inbox(Protocol):
    """Where one listener gets live text."""

    def take(self) -> list[Delta]:
        """What came since the last time; never waits, for anything."""
        ...

    def close(self) -> None:
        """Listen no more."""
        ...


@runtime_checkable
class CarryLiveText(Protocol):
    """A log that carries live text to its listeners of that moment, in any process, and keeps nothing."""

    def speak(self, text: LiveText) -> Callable[[], None]:
        """Have a thread bring it to the listeners, until what this returns is called."""
        ...

    def hear(self) -> Inbox | None:
        """Listen from now on. Live text that has begun comes from its beginning. None if the store cannot listen."""
        ...


@runtime_checkable
class IndexLogs(Protocol):
    """Answers what follows from `Logs.listing` without a look into every log."""

    def ids(self, *, like: str = "", deleted: bool = False) -> Iterable[str]:
        """See `derived.ids`."""
        ...

    def newest(self, *, deleted: bool = False, after: ListingCursor | None = None) -> Iterator[Listed]:
        """See `derived.newest`."""
        ...

    def all_logs(self) -> Iterator[Log]:
        """See `derived.all_logs`."""
        ...


@runtime_checkable
class FindHolder(Protocol):
    """Knows which session has an entry without opening them one after the other."""

    def holder_of(self, entry_id: str) -> str | None:
        """See `derived.holder_of`."""
        ...


@runtime_checkable
class IndexBlobs(Protocol):
    """Answers for many blobs at once."""

    def lacking(self, digests: Iterable[str]) -> set[str]:
        """See `derived.lacking`."""
        ...

    def packs(self) -> frozenset[str]:
        """See `derived.packs`."""
        ...


@runtime_checkable
class ListPacks(Protocol):
    """An `AddBlob` that lists packs once and works from that list."""

    def packs(self) -> frozenset[str]:
        """See `derived.packs`: those of the first time, and what came to be known since. Only inside `keeping`."""
        ...


@runtime_checkable
class PutBlobs(Protocol):
    """Keeps a few blobs in a shorter way than by `Blobs.add`."""

    def put(self, blobs: dict[str, bytes]) -> None:
        """See `derived.put`."""
        ...


@runtime_checkable
class DoubtBlobs(Protocol):
    """May not know which blobs it has, because something is damaged."""

    def doubt(self) -> str:
        """Why it is not certain which blobs there are; empty if it is."""
        ...


@runtime_checkable
class MeasureDisk(Protocol):
    """Knows how much room it takes."""

    def disk(self) -> dict[str, int]:
        """How many bytes logs, deleted logs and blobs take."""
        ...

    def unneeded(self, needed: Container[str]) -> dict[str, int]:
        """How many `blobs` and `bytes` a collection would remove, about."""
        ...


@runtime_checkable
class ScatterBlobs(Protocol):
    """Keeps blobs in more and more places, until they are written together by a collection."""

    def is_scattered(self) -> bool:
        """Whether it is time for that."""
        ...


@runtime_checkable
class EraseEntries(Protocol):
    """Takes the content out of entries for good, wherever it keeps them, and remembers that it did."""

    def erase(self, plan: ErasingPlan) -> str:
        """Atomic across crashes: the next writer completes it. Idempotent.

        The blobs are left to the caller, who knows which are needed: the plan is `unsettled` under the name that this
        returns until it is settled.
        """
        ...

    def erasures(self, first: str | None = None) -> dict[str, list[Erasure]]:
        """What was erased, by the first entries of the logs; with `first`, of that log. They outlive the log."""
        ...

    def unsettled(self) -> dict[str, ErasingPlan]:
        """The plans of which blobs may be left. Their lines are erased by then, even after a crash."""
        ...

    def settle(self, name: str) -> None:
        """Note that nothing is left of it."""
        ...


@runtime_checkable
class VersionLog(Protocol):
    """A log that can tell whether lines of it became others."""

    def version(self) -> object:
        """A value that changes when an earlier line changes; None if the log is gone."""
        ...


@runtime_checkable
class CacheData(Protocol):
    """Keeps what can be made again. Losing it is no loss."""

    def load(self, name: str) -> bytes:
        """Something as it was last kept; empty if it was not."""
        ...

    def save(self, name: str, data: bytes) -> None:
        """Keep something."""
        ...


@runtime_checkable
class ReportHealth(Protocol):
    """Can say how it is."""

    def health(self) -> dict[str, Any]:
        """What a person or a monitor wants to know; `ok` says whether it works."""
        ...


class TableConnection(Protocol):
    """A dedicated connection, for one thread at a time. It raises Turnlog's errors."""

    tenant: int

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows that a statement returns."""
        ...

    def run(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement once for each row of values, without an answer."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """One transaction."""
        ...

    def lock(self, waiting: Callable[[], None] | None = None) -> AbstractContextManager[None]:
        """Lock these tables of this tenant against other writers. `waiting` is called while another one holds it."""
        ...

    def close(self) -> None:
        """Give it back."""
        ...


@runtime_checkable
class KeepTables(Protocol):
    """A store with a database that has room for the tables of others."""

    def dedicated(self, name: str) -> TableConnection:
        """A connection for the tables of that name."""
        ...


Following = Literal["told", "asking"]
"""How a follower of a session learns of new entries: it is notified, or polls."""


@runtime_checkable
class NotifyFollowers(Protocol):
    """A store that may notify followers."""

    @property
    def following(self) -> Following:
        """`told` if it does."""
        ...


class Region(Struct):
    """A stretch of a log that is not what was written. Offsets and lengths are in bytes."""

    offset: int
    length: int
    kind: str
    """In the words of `Damage`."""
    line: int
    """The number of its first line in the file, from 1."""
    lines: int = 1
    seq: int | None = None
    """The entry that can be read in spite of it."""
    is_used: bool = False
    """Whether that entry counts, so that a repair leaves the line as it is."""
    is_stray: bool = False
    """For `order`: whether its entry is in no other place, so that a repair leaves the line as it is."""
    is_last: bool = False
    """Whether no line ends after it: the remains of the last write."""
    older: int = 0
    """The last entry that counts before it; 0 if none does."""
    newer: int | None = None
    """The first entry that counts after it; None if none does."""
    inside: list[int] = []
    """The entries that count in it."""
    sample: str = ""
    """How it begins."""


class Surveyed(Struct):
    """What a whole log holds, byte by byte."""

    path: str
    size_bytes: int
    entries: int
    regions: list[Region]


class Repaired(Struct, frozen=True):
    """What a repair did."""

    blanked_bytes: int
    original: str
    """Where the file as it was is kept."""
    note: int
    """The `seq` of the note that says so in the log."""


@runtime_checkable
class KeepFiles(Protocol):
    """Keeps each log in a file that people can look at and repair."""

    @property
    def folder(self) -> str:
        """The folder that is the store's own."""
        ...

    def file_of(self, session_id: str) -> str:
        """The file of a session, deleted or not. Raises `NotFound`."""
        ...

    def examine(self, session_id: str, visit: Callable[[AnyEntry], None]) -> Surveyed:
        """Read a whole log: nothing is locked, nothing is changed. Every entry that counts is visited."""
        ...

    def repair(self, session_id: str, *, without: Collection[int]) -> Repaired | None:
        """Blank out what is damaged in a session's log, and these entries; None if there is nothing to do."""
        ...

    def damaged_blobs(self) -> Iterator[str]:
        """The digests of blobs that cannot be read back. Reads all of them."""
        ...
