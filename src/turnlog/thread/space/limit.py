"""The size limit of a home that agents fill automatically: what is given up near the limit, and what never is."""

from __future__ import annotations

from functools import partial

from turnlog.store import Listed, Store, derived
from turnlog.thread.report import info_of
from turnlog.thread.space.garbage import Collected, collect, drop, tidy

_FULL, _DOWN_TO = 0.95, 0.7
"""The part of the limit at which checkpoints are given up, and the part that remains afterwards, to leave room."""


def keep_limit(store: Store, limit_bytes: int, *, is_full: bool = False) -> Collected | None:
    """Pack scattered blobs; near the limit, give up checkpoints until there is room again.

    Only automatic checkpoints are given up, those of tools first, and none of the newest session of any folder.
    `is_full` says that there was no room for a checkpoint. Returns None if nothing had to be given up.
    """
    tidy(store)
    used = derived.disk(store).get("blobs", 0)
    if not is_full and used <= limit_bytes * _FULL:
        return None
    wanted = int(min(limit_bytes, used) * _DOWN_TO)
    return collect(store, quota_bytes=wanted, drop=partial(drop, store), spared=_newest(store))


def _newest(store: Store) -> set[str]:
    """The newest session of each folder, by the ids of their first entries."""
    newest: dict[str | None, Listed] = {}
    for row in sorted(store.listing(), key=lambda row: row.order):
        newest[info_of(row).workspace] = row
    return {row.first for row in newest.values()}
