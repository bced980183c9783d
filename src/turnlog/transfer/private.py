"""Ignored files on their way to another home: they go there only if somebody asks for it."""

from __future__ import annotations

from contextlib import closing, nullcontext

from turnlog.log.entry import Checkpoint, Root
from turnlog.store import Store, derived
from turnlog.thread.content import stays
from turnlog.transfer.blobs import Carrier, held
from turnlog.transfer.report import Transferred


def bring_private(source: Store, target: Store, carrier: Carrier, row: Transferred, dry_run: bool) -> None:
    """Bring what is in the ignored files of a session whose entries are there, also those that came without them."""
    if row.error is not None:
        return
    roots = _roots(source, row.id)
    with held(source), nullcontext() if dry_run else target.keeping():
        here = sorted(roots.keys() - derived.lacking(source, roots)) if roots else []
        cargo = carrier.load_roots(roots[tree] for tree in here)
        if dry_run:
            row.blobs += len(cargo.lacking)
        elif cargo.lacking:
            blobs, size = carrier.bring(cargo)
            row.blobs, row.blob_bytes = row.blobs + blobs, row.blob_bytes + size
            carrier.arrived(cargo)
    row.problems += [problem for problem in cargo.problems if problem not in row.problems]
    row.outcome = "grown" if row.outcome == "same" and cargo.lacking else row.outcome


def _roots(source: Store, name: str) -> dict[str, Root]:
    with closing(source.open(name, read_only=True)) as log:
        points = (item for item in log.read() if isinstance(item, Checkpoint))
        return {root.tree: root for point in points for root in point.roots if stays(root)}
