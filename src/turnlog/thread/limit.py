"""The limit of a home that agents fill by themselves: what goes where it has too many blobs, and what never does."""

from __future__ import annotations

from functools import partial

from turnlog.store import Listed, Store, derived
from turnlog.thread.garbage import Collected, collect, drop, tidy
from turnlog.thread.report import info_of

_FULL, _DOWN_TO = 0.95, 0.7
"""From which part of the limit on something has to go, and how much is left then, so that there is room again."""


def keep_limit(store: Store, limit_bytes: int, *, is_full: bool = False) -> Collected | None:
    """Write blobs together that lie scattered; near the limit, give up checkpoints until there is room again.

    Only automatic ones, those of tools first, and none of the newest session of any folder. `is_full` says that there
    was no room for a checkpoint. None where all fits.
    """
    tidy(store)
    used = derived.disk(store).get("blobs", 0)
    if not is_full and used <= limit_bytes * _FULL:
        return None
    wanted = int(min(limit_bytes, used) * _DOWN_TO)
    return collect(store, quota_bytes=wanted, drop=partial(drop, store), spared=_newest(store))


def _newest(store: Store) -> set[str]:
    """The newest session of each folder, by their first entries."""
    newest: dict[str | None, Listed] = {}
    for row in sorted(store.listing(), key=lambda row: row.order):
        newest[info_of(row).workspace] = row
    return {row.first for row in newest.values()}
