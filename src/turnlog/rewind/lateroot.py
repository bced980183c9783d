"""Folders that came to be covered in the middle of a log: an agent entered a worktree, or edited a file elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from msgspec.structs import replace

from turnlog.log.entry import Checkpoint
from turnlog.log.part import Root
from turnlog.rewind.snapshot import IGNORED, WORKSPACE


class LateRoots:
    """The checkpoints at which folders appeared, and their state there."""

    def __init__(self, checkpoints: Iterable[Checkpoint]) -> None:
        self._appeared: list[tuple[int, Root]] = []
        last: set[str] = set()
        for checkpoint in checkpoints:
            here = {root.name: root.path for root in checkpoint.roots if root.name not in (WORKSPACE, IGNORED)}
            new = {path for name, path in here.items() if name not in last}
            self._appeared += [
                (checkpoint.seq, root) for root in checkpoint.roots if root.name != WORKSPACE and root.path in new
            ]
            last = set(here)

    def fill(self, checkpoint: Checkpoint, until: Checkpoint | None) -> Checkpoint:
        """The checkpoint, plus the folders that appeared later, at most up to `until`, as they were when first seen."""
        last = until.seq if until is not None and until.seq else inf
        roots = {(root.name, root.path): root for root in checkpoint.roots}
        for seq, root in self._appeared:
            if checkpoint.seq < seq <= last:
                roots.setdefault((root.name, root.path), root)
        return replace(checkpoint, roots=list(roots.values()))
