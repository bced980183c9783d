"""Figures of a session that is shown: what it cost, and how large a blob is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from turnlog.errors import Corrupt, NotFound
from turnlog.view.number import money

if TYPE_CHECKING:
    from turnlog.session import Home
    from turnlog.thread.reader import SessionReader


def blob_size(home: Home) -> Callable[[str], int | None]:
    """How large a blob of that home is."""

    def size(digest: str) -> int | None:
        try:
            return len(home.get_blob(digest))
        except (NotFound, Corrupt):
            return None

    return size


def spent(found: SessionReader) -> str:
    """What it cost in all, for people; empty where that is not known."""
    total = found.cost().total
    if not total.micros:
        return ""
    return money(total.micros) + ("" if total.is_complete else " and more")
