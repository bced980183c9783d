"""Folders that came to be covered in the middle of a log: an agent went into a worktree, or edited a file elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from msgspec.structs import replace

from turnlog.log.entry import Checkpoint, Root
from turnlog.rewind.snapshot import IGNORED, WORKSPACE


class Appearances:
    """Where in a log they came, and what they were then."""

    def __init__(self, checkpoints: Iterable[Checkpoint]) -> None:
        self._found: list[tuple[int, Root]] = []
        last: set[str] = set()
        for one in checkpoints:
            here = {root.name: root.path for root in one.roots if root.name not in (WORKSPACE, IGNORED)}
            new = {path for name, path in here.items() if name not in last}
            self._found += [(one.seq, root) for root in one.roots if root.name != WORKSPACE and root.path in new]
            last = set(here)

    def fill(self, checkpoint: Checkpoint, until: Checkpoint | None) -> Checkpoint:
        """A checkpoint with the folders that came later, at most up to another one, as they were when first seen."""
        last = until.seq if until is not None and until.seq else inf
        roots = {(root.name, root.path): root for root in checkpoint.roots}
        for seq, root in self._found:
            if checkpoint.seq < seq <= last:
                roots.setdefault((root.name, root.path), root)
        return replace(checkpoint, roots=list(roots.values()))
