"""What some stores and logs can do beside the contract. `ability` asks for it; without it, one does without."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

from msgspec import Struct

from turnlog.log.entry import AnyEntry
from turnlog.log.erasure.content import ErasingPlan, Erasure
from turnlog.store import Blobs, Listed, ListingCursor, Log, Logs

if TYPE_CHECKING:
    from turnlog.store.broadcast import Delta, LiveText

_T = TypeVar("_T")


def ability(one: Logs | Blobs | Log, kind: type[_T]) -> _T | None:
    """A store or a log as one that can do this; None if it cannot."""
    return one if isinstance(one, kind) else None


@runtime_checkable
class Indexed(Protocol):
    """A log that knows where an id is."""

    def find(self, entry_id: str) -> AnyEntry | None:
        """The entry with that id."""
        ...


@runtime_checkable
class Vouched(Protocol):
    """A log that has to look through all of itself for an id that another process may have written."""

    def vouch(self, ids: frozenset[str]) -> None:
        """These ids are in nothing that the caller has seen: who appends them `alone` waits for no such look."""
        ...


@runtime_checkable
class Stamping(Protocol):
    """A log that knows whether it is still the same."""

    def stamp(self) -> object:
        """Another value whenever the log is another."""
        ...


@runtime_checkable
class Telling(Protocol):
    """A log that hears of news."""

    def listen(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Have `tell` called, on any thread, when there may be new entries, until what this returns is called.

        A call may be spurious, and a call may be missing: the caller looks for itself from time to time.
        """
        ...


class Inbox(Protocol):
    """Where one listener gets what is being said."""

    def take(self) -> list[Delta]:
        """What came since the last time; never waits, for anything."""
        ...

    def close(self) -> None:
        """Listen no more."""
        ...


@runtime_checkable
class Broadcasts(Protocol):
    """A log that carries what is being said to who listens at that moment, in whichever process, and keeps nothing."""

    def speak(self, text: LiveText) -> Callable[[], None]:
        """Have it brought to whoever listens, by a thread, until what this returns is called."""
        ...

    def hear(self) -> Inbox | None:
        """Listen from now on. What is being said already comes from its beginning. None where nobody can listen."""
        ...


@runtime_checkable
class LogIndex(Protocol):
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
class Holding(Protocol):
    """Knows which session has an entry without opening them one after the other."""

    def holder_of(self, entry_id: str) -> str | None:
        """See `derived.holder_of`."""
        ...


@runtime_checkable
class BlobIndex(Protocol):
    """Answers for many blobs at once."""

    def lacking(self, digests: Iterable[str]) -> set[str]:
        """See `derived.lacking`."""
        ...

    def packs(self) -> frozenset[str]:
        """See `derived.packs`."""
        ...


@runtime_checkable
class ListsPacks(Protocol):
    """An `Adding` that looks once which packs there are, and does with that."""

    def packs(self) -> frozenset[str]:
        """See `derived.packs`: those of the first time, and what came to be known since. Only inside `keeping`."""
        ...


@runtime_checkable
class Puts(Protocol):
    """Keeps a few blobs in a shorter way than by `Blobs.add`."""

    def put(self, blobs: dict[str, bytes]) -> None:
        """See `derived.put`."""
        ...


@runtime_checkable
class Doubts(Protocol):
    """May not know which blobs it has, because something is damaged."""

    def doubt(self) -> str:
        """Why nobody can say for sure which blobs there are; empty if everybody can."""
        ...


@runtime_checkable
class Measured(Protocol):
    """Knows how much room it takes."""

    def disk(self) -> dict[str, int]:
        """How many bytes logs, deleted logs and blobs take."""
        ...

    def unneeded(self, needed: Container[str]) -> dict[str, int]:
        """How many `blobs` and `bytes` a collection would remove, about."""
        ...


@runtime_checkable
class Scattered(Protocol):
    """Keeps blobs in more and more places, until they are written together by a collection."""

    def is_scattered(self) -> bool:
        """Whether it is time for that."""
        ...


@runtime_checkable
class Erases(Protocol):
    """Takes the content out of entries for good, wherever it keeps them, and remembers that it did."""

    def erase(self, plan: ErasingPlan) -> str:
        """All of it, though whoever does it dies: then who writes next goes on. Doing it again does nothing more.

        The blobs are left to the caller, who knows which are needed: the plan is `unsettled` under the name that this
        returns until it is settled.
        """
        ...

    def erasures(self, first: str | None = None) -> dict[str, list[Erasure]]:
        """What was erased, by the first entries of the logs; that of one log, if told. They outlive the log."""
        ...

    def unsettled(self) -> dict[str, ErasingPlan]:
        """The plans of which blobs may be left. Their lines are erased by then, though whoever began it died."""
        ...

    def settle(self, name: str) -> None:
        """Nothing is left of it."""
        ...


@runtime_checkable
class Versioned(Protocol):
    """A log that can tell whether lines of it became others."""

    def version(self) -> object:
        """Another value when something that was there before is not what it was; None if it is not there any more."""
        ...


@runtime_checkable
class Cache(Protocol):
    """Keeps what can be made again. Losing it is no loss."""

    def load(self, name: str) -> bytes:
        """Something as it was last kept; empty if it was not."""
        ...

    def save(self, name: str, data: bytes) -> None:
        """Keep something."""
        ...


@runtime_checkable
class Monitored(Protocol):
    """Can say how it is."""

    def health(self) -> dict[str, Any]:
        """What a person or a monitor wants to know; `ok` says whether it works."""
        ...


class TableConnection(Protocol):
    """A connection of one's own, for one thread at a time. What goes wrong is an error of ours."""

    tenant: int

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The answer to a question."""
        ...

    def run(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """The same with many values, and no answer."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """All of it or nothing."""
        ...

    def lock(self, waiting: Callable[[], None] | None = None) -> AbstractContextManager[None]:
        """Nobody else of this tenant writes these tables inside. `waiting` is told while somebody does."""
        ...

    def close(self) -> None:
        """Give it back."""
        ...


@runtime_checkable
class KeepsTables(Protocol):
    """A store with a database that has room for the tables of others."""

    def dedicated(self, name: str) -> TableConnection:
        """For whoever keeps tables of that name."""
        ...


Following = Literal["told", "asking"]
"""How who follows a session learns of news."""


@runtime_checkable
class Followed(Protocol):
    """A store that may tell of news."""

    @property
    def following(self) -> Following:
        """Whether it does."""
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
class InFiles(Protocol):
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
