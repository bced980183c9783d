"""Batches of entries before they go to a store: their ids differ, and their blobs are stored."""

from __future__ import annotations

from collections.abc import Sequence

from turnlog.errors import Invalid, NotFound
from turnlog.log.draft import Draft
from turnlog.store import Store, derived


def refuse_equal_ids(drafts: Sequence[Draft]) -> None:
    """Raise `Invalid` if two drafts have the same id: entries are found, repeated and erased by their ids."""
    if len({draft.id for draft in drafts}) < len(drafts):
        raise Invalid("two drafts of one batch have the same id")


def keep_blobs(store: Store, drafts: Sequence[Draft], blobs: dict[str, bytes]) -> None:
    """Store the blobs of a batch before its entries; `NotFound` for a blob that is neither stored nor new."""
    for digest in {digest for draft in drafts for digest in draft.blobs}:
        if digest not in blobs and not store.has(digest):
            raise NotFound(f"no blob {digest}", hint="put it there first with home.put_blob")
    if blobs:
        derived.put(store, blobs)
