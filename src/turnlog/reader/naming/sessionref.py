"""A session that a word means, and how the catalog is opened to find it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from turnlog.catalog import Card, Catalog
    from turnlog.formats import Source

OpenCatalog = Callable[[], AbstractContextManager["Catalog"]]
"""Opens the catalog of the same home and of the other agents; only asked where a word may mean one of theirs."""


class SessionRef(Struct, frozen=True):
    """One session: `id` is ours where there is no source, else that agent's own."""

    id: str
    source: Source | None = None
    workspace: str | None = None
    """Where another agent's was last, if the catalog told."""

    @property
    def name(self) -> str:
        """What to type for it."""
        return self.id if self.source is None else f"{self.source.agent}:{self.id}"


def ref_of(card: Card) -> SessionRef:
    """The session of a card."""
    if card.is_ours:
        return SessionRef(card.id)
    from turnlog.formats import Source

    return SessionRef(card.id, Source(card.agent or "", card.path, card.key), card.workspace)
