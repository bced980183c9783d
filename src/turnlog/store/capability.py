"""Optional capabilities of stores and logs, named by verbs: imported as `can`. `ability` checks for one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

from msgspec import Struct

from turnlog.log.entry import AnyEntry
from turnlog.log.erasure.content import ErasingPlan, Erasure
from turnlog.store import Blobs, Freed, Listed, Log, Logs
from turnlog.store.listing import ListingCursor

if TYPE_CHECKING:
    from turnlog.store.broadcast import Delta, LiveText

_T = TypeVar("_T")


def ability(holder: Logs | Blobs | Log, kind: type[_T]) -> _T | None:
    """Return the store or log if it has this capability; None otherwise."""
    return holder if isinstance(holder, kind) else None


@runtime_checkable
class FindEntry(Protocol):
    """A log that can find an entry by id."""

    def find(self, entry_id: str) -> AnyEntry | None:
        """Return the entry with that id, or None."""
        ...


@runtime_checkable
class VouchIds(Protocol):
    """A log that has to search all of its entries for an id that another process may have written."""

    def vouch(self, ids: frozenset[str]) -> None:
        """Declare that none of these ids is in the log as the caller has read it.

        An `alone` append then need not search for them.
        """
        ...


@runtime_checkable
class StampLog(Protocol):
    """A log that can tell whether it changed."""

    def stamp(self) -> object:
        """A value that changes whenever the log changes."""
        ...


@runtime_checkable
class NotifyNewEntries(Protocol):
    """A log that can notify subscribers of new entries."""

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback`, on any thread, when there may be new entries. Returns a function that ends this.

        Calls may be spurious, and calls may be missing: the caller must also poll from time to time.
        """
        ...


class Inbox(Protocol):
    """The inbox of one listener to live text."""

    def take(self) -> list[Delta]:
        """Return the deltas since the last call; never blocks."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


@runtime_checkable
class CarryLiveText(Protocol):
    """A log that sends live text to its current listeners, in any process, and stores none of it."""

    def publish(self, text: LiveText) -> Callable[[], None]:
        """Send the text to the listeners from a thread. Returns a function that ends this."""
        ...

    def open_inbox(self) -> Inbox | None:
        """Listen for live text, from the beginning of text that has begun. None if the store cannot listen."""
        ...


@runtime_checkable
class IndexLogs(Protocol):
    """A store that answers queries on its listing without reading every log."""

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
    """A store that finds the session of an entry without reading every log."""

    def holder_of(self, entry_id: str) -> str | None:
        """See `derived.holder_of`."""
        ...


@runtime_checkable
class IndexBlobs(Protocol):
    """A store that answers for many blobs at once."""

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
        """See `derived.packs`: the packs of the first listing, and those found since. Only inside `keeping`."""
        ...


@runtime_checkable
class PutBlobs(Protocol):
    """A store that adds a few blobs faster than `Blobs.add`."""

    def put(self, blobs: dict[str, bytes]) -> None:
        """See `derived.put`."""
        ...


@runtime_checkable
class DoubtBlobs(Protocol):
    """A store that may not know which blobs it has, because of damage."""

    def doubt(self) -> str:
        """Return why it is uncertain which blobs exist; "" if it is certain."""
        ...


@runtime_checkable
class MeasureDisk(Protocol):
    """A store that can measure its size."""

    def disk(self) -> dict[str, int]:
        """Return the sizes of logs, deleted logs and blobs in bytes."""
        ...

    def unneeded(self, needed: Container[str]) -> Freed:
        """Return about what a collection would remove."""
        ...


@runtime_checkable
class ScatterBlobs(Protocol):
    """A store whose blobs are spread over more and more places until a collection merges them."""

    def is_scattered(self) -> bool:
        """Whether a collection is due."""
        ...


@runtime_checkable
class EraseEntries(Protocol):
    """A store that can erase the content of entries for good, and records each erasure."""

    def erase(self, plan: ErasingPlan) -> str:
        """Erase what the plan lists. Atomic across crashes: the next writer completes it. Idempotent.

        The caller removes the blobs, because it knows which are needed: the plan is `unsettled` under the returned name
        until it is settled.
        """
        ...

    def erasures(self, first: str | None = None) -> dict[str, list[Erasure]]:
        """Return the erasures by the id of the log's first entry, or those of log `first`. They outlive the log."""
        ...

    def unsettled(self) -> dict[str, ErasingPlan]:
        """Return the plans whose blobs may still exist. Their lines are erased by now, even after a crash."""
        ...

    def settle(self, name: str) -> None:
        """Record that the blobs of the plan with that name are gone."""
        ...


@runtime_checkable
class VersionLog(Protocol):
    """A log that can tell whether any of its lines were rewritten."""

    def version(self) -> object:
        """A value that changes when an earlier line changes; None if the log is gone."""
        ...


@runtime_checkable
class CacheData(Protocol):
    """A store that caches data that can be recomputed."""

    def load(self, name: str) -> bytes:
        """Return the data last saved under that name; empty if there is none."""
        ...

    def save(self, name: str, data: bytes) -> None:
        """Save data under that name."""
        ...


@runtime_checkable
class ReportHealth(Protocol):
    """A store that can report its health."""

    def health(self) -> dict[str, Any]:
        """Return a report for people and monitors; `ok` says whether the store works.

        If it does not, `reason` is a word for monitors, `problem` and `hint` are for people.
        """
        ...


class TableConnection(Protocol):
    """A dedicated connection, for one thread at a time. It raises Turnlog's errors."""

    tenant: int

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        ...

    def run(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement once for each row of values. Returns nothing."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """Run the block in one transaction."""
        ...

    def lock(self, waiting: Callable[[], None] | None = None) -> AbstractContextManager[None]:
        """Lock these tables of this tenant against other writers. `waiting` is called while one has the lock."""
        ...

    def close(self) -> None:
        """Release the connection."""
        ...


@runtime_checkable
class KeepTables(Protocol):
    """A store with a database in which callers may keep tables of their own."""

    def dedicated(self, name: str) -> TableConnection:
        """Return a connection for the tables of that name."""
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
    """A damaged region of a log. Offsets and lengths are in bytes."""

    offset: int
    length: int
    kind: str
    """The kind of damage, one of those of `Damage`."""
    line: int
    """The number of the region's first line in the file, from 1."""
    lines: int = 1
    seq: int | None = None
    """The `seq` of the entry that can be read despite the damage."""
    is_used: bool = False
    """Whether that entry counts, so that a repair leaves the line as it is."""
    is_stray: bool = False
    """For `order`: whether the entry is nowhere else in the log, so that a repair leaves the line as it is."""
    is_last: bool = False
    """Whether no line ends after the region: it is the rest of the last write."""
    older: int = 0
    """The last entry before the region that counts; 0 for none."""
    newer: int | None = None
    """The first entry after the region that counts; None for none."""
    inside: list[int] = []
    """The entries inside the region that count."""
    sample: str = ""
    """The beginning of the region, as text."""


class Surveyed(Struct):
    """The result of examining a whole log, byte by byte."""

    path: str
    size_bytes: int
    entries: int
    regions: list[Region]


class Repaired(Struct, frozen=True):
    """The result of a repair."""

    blanked_bytes: int
    original: str
    """The path of the original file, which is kept."""
    note: int
    """The `seq` of the note in the log about the repair."""


@runtime_checkable
class KeepFiles(Protocol):
    """A store that keeps each log in a file, which people can inspect and repair."""

    @property
    def folder(self) -> str:
        """The folder of the store."""
        ...

    def file_of(self, session_id: str) -> str:
        """Return the file of a session, deleted or not. Raises `NotFound`."""
        ...

    def examine(self, session_id: str, visit: Callable[[AnyEntry], None]) -> Surveyed:
        """Read a whole log without locking or changing it. `visit` is called with every entry that counts."""
        ...

    def repair(self, session_id: str, *, without: Collection[int]) -> Repaired | None:
        """Blank out the damage in a session's log, and the entries `without`; None if there is nothing to do."""
        ...

    def damaged_blobs(self) -> Iterator[str]:
        """Yield the digests of blobs that cannot be read. Reads every blob."""
        ...
