"""The limit of a home that agents fill by themselves: what goes where it has too many blobs, and what never does."""

from __future__ import annotations

from functools import partial

from turnlog.store import Listed, Store, derived
from turnlog.thread.garbage import Collected, collect, drop, tidy
from turnlog.thread.report import info_of

_DOWN_TO = 0.8
"""Of the limit: there is to be some room again."""


def keep_limit(store: Store, limit_bytes: int) -> Collected | None:
    """Write blobs together that lie scattered; over the limit, give up checkpoints until there is room again.

    Only automatic ones, those of tools first, and none of the newest session of any folder. None where all fitted.
    """
    tidy(store)
    if derived.disk(store).get("blobs", 0) <= limit_bytes:
        return None
    return collect(store, quota_bytes=int(limit_bytes * _DOWN_TO), drop=partial(drop, store), spared=_newest(store))


def _newest(store: Store) -> set[str]:
    """The newest session of each folder, by their first entries."""
    newest: dict[str | None, Listed] = {}
    for row in sorted(store.listing(), key=lambda row: row.order):
        newest[info_of(row).workspace] = row
    return {row.first for row in newest.values()}
