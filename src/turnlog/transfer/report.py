"""What a transfer did, session by session. A pure value."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

from msgspec import Struct

from turnlog.errors import TurnlogError


class TransferOptions(TypedDict, total=False):
    """The options of `push`, `pull` and `sync`."""

    dry_run: bool
    """Nothing is written: the report says what would be."""
    include_ignored: bool
    """Also what is in ignored files that checkpoints cover."""
    progress: Callable[[int, int, str], None] | None
    """Called with each session: its number, how many there are, its id."""


class Transferred(Struct):
    """What became of one session."""

    id: str
    outcome: str = "same"
    """`new`, `grown`, `same`; `forked`: the other side had gone on with it, too; `merged`: what was new needed no fork;
    `erased`: there was nothing new but what was erased here, and is there now; `deleted`: it is in the trash there, and
    was left alone; `failed`."""
    entries: int = 0
    """How many were sent."""
    blobs: int = 0
    blob_bytes: int = 0
    into: str | None = None
    """The fork there that has what was new."""
    problems: list[str] = []
    """What is damaged or missing here, and so there as well."""
    private: int = 0
    """Checkpoints that came without the contents of ignored files, which stay where they are."""
    erased: int = 0
    """How many entries were erased there because they were here."""
    error: TurnlogError | None = None
