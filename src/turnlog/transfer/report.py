"""The report of a transfer, session by session. A pure value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypedDict

from msgspec import Struct

from turnlog.errors import TurnlogError


class TransferOptions(TypedDict, total=False):
    """The options of `push`, `pull` and `sync`."""

    dry_run: bool
    """Write nothing, and report what would be done."""
    include_ignored: bool
    """Also transfer the content of ignored files that checkpoints cover."""
    progress: Callable[[int, int, str], None] | None
    """Called for each session with its number, the total, and its id."""


class SentBlobs(Struct):
    """How many blobs were sent, and their size."""

    count: int = 0
    size_bytes: int = 0


class Transferred(Struct):
    """The result for one session. A run has one for each session."""

    id: str
    outcome: str = "same"
    """`new`, `grown`, `same`; `forked`: the other side had continued it, too; `merged`: the new entries needed no fork;
    `erased`: nothing was new but erasures, which were repeated there; `deleted`: it is in the trash there, and was left
    alone; `failed`."""
    entries: int = 0
    """The number of entries sent."""
    blobs: int = 0
    blob_bytes: int = 0
    into: str | None = None
    """The id of the fork at the target."""
    problems: list[str] = []
    """Damaged or missing content here, which is therefore missing there as well."""
    private: int = 0
    """Checkpoints that were sent without the contents of ignored files, which stay in this home."""
    erased: int = 0
    """The number of entries that were erased there because they were erased here."""
    error: TurnlogError | None = None


def add_problems(row: Transferred, problems: Iterable[str]) -> None:
    """Add problems to a report, each once: a retry finds the same ones again."""
    row.problems += [problem for problem in dict.fromkeys(problems) if problem not in row.problems]


def add_blobs(row: Transferred, sent: SentBlobs) -> None:
    """Add blobs that were sent to a report."""
    row.blobs += sent.count
    row.blob_bytes += sent.size_bytes
