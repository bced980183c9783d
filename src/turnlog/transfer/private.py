"""Transferring ignored files, which happens only on request."""

from __future__ import annotations

from contextlib import closing, nullcontext

from turnlog.log.entry import Checkpoint
from turnlog.log.part import Root
from turnlog.store import Store, derived
from turnlog.thread.space.checkpointcontent import is_kept_at_home
from turnlog.transfer.blobs import BlobTransfer, keeping_if_writable
from turnlog.transfer.outgoing import SessionKey
from turnlog.transfer.report import Transferred, add_blobs, add_problems


def transfer_private(
    source: Store, target: Store, blobs: BlobTransfer, key: SessionKey, row: Transferred, dry_run: bool
) -> None:
    """Transfer the ignored files of a session whose entries are there, including those skipped in earlier runs."""
    roots = _roots(source, key)
    with keeping_if_writable(source), nullcontext() if dry_run else target.keeping():
        kept = sorted(roots.keys() - derived.lacking(source, roots)) if roots else []
        needs = blobs.load_roots(roots[tree] for tree in kept)
        if dry_run:
            row.blobs += len(needs.lacking)
        elif needs.lacking:
            add_blobs(row, blobs.transfer(needs))
            blobs.record_present(needs)
    add_problems(row, needs.problems)
    row.outcome = "grown" if row.outcome == "same" and needs.lacking else row.outcome


def _roots(source: Store, key: SessionKey) -> dict[str, Root]:
    with closing(source.open(key.id, read_only=True, first=key.first)) as log:
        points = (item for item in log.read() if isinstance(item, Checkpoint))
        return {root.tree: root for point in points for root in point.roots if is_kept_at_home(root)}
