"""What was removed for good, in JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from turnlog.cli.frame.document import shape
from turnlog.thread.removal.purging import Purged

REMOVED = {
    "id": shape.text(),
    "kind": shape.text("`session`, `fork` or `subagent`"),
    "entries": shape.number(),
    "size_bytes": shape.number(),
}
LEFT = {
    "id": shape.text("empty for `blobs`"),
    "kind": shape.text("`session`, `fork`, `subagent` or `blobs`"),
    "why": shape.text(),
}


def json_receipt(purged: Sequence[Purged]) -> dict[str, Any]:
    """Return what was removed, what stayed, and how much space that freed."""
    return {
        "removed": [msgspec.to_builtins(one) for receipt in purged for one in receipt.removed],
        "left": [msgspec.to_builtins(one) for receipt in purged for one in receipt.left],
        "blobs": sum(receipt.blobs for receipt in purged),
        "freed_bytes": sum(receipt.freed_bytes for receipt in purged),
    }
