"""The trees behind checkpoints, as `checkpoint` and `checkpoints` count them."""

from __future__ import annotations

from collections.abc import Iterator

from turnlog.cli.draw.change import count_changes
from turnlog.errors import Corrupt, NotFound
from turnlog.log.entry import Checkpoint
from turnlog.rewind.overlay import Overlay
from turnlog.store import Store
from turnlog.workspace.diff import Difference, differences
from turnlog.workspace.tree import FILE, FOLDER, LINK, UNKNOWN, Tree


class Trees:
    """The trees behind checkpoints: how much is in them, and how many paths differ."""

    def __init__(self, store: Store) -> None:
        self._overlay = Overlay(store.get)
        self._weights: dict[str, tuple[int, int]] = {}

    def weight(self, checkpoint: Checkpoint) -> tuple[int, int] | None:
        """How many files and bytes; None where a tree cannot be read."""
        try:
            trees = [self._overlay.tree(checkpoint, root) for root in checkpoint.roots if not root.is_private]
            weights = [self._weight_of(tree) for tree in trees if tree is not None]
        except (Corrupt, NotFound):
            return None
        return sum(files for files, _ in weights), sum(total for _, total in weights)

    def _weight(self, digest: str) -> tuple[int, int]:
        if digest not in self._weights:
            self._weights[digest] = self._weight_of(self._overlay.get(digest))
        return self._weights[digest]

    def _weight_of(self, tree: Tree) -> tuple[int, int]:
        files = total = 0
        for node in tree.values():
            if node.kind == UNKNOWN:
                continue  # it is there, and not in the checkpoint
            more = self._weight(node.digest) if node.kind == FOLDER else (node.kind in (FILE, LINK), node.size)
            files, total = files + more[0], total + more[1]
        return files, total

    def changes(self, before: Checkpoint, after: Checkpoint) -> dict[str, int] | None:
        """How many paths were created, modified, deleted; None where a tree cannot be read."""
        try:
            return count_changes(self._differences(before, after))
        except (Corrupt, NotFound):
            return None

    def _differences(self, before: Checkpoint, after: Checkpoint) -> Iterator[Difference]:
        for root in before.roots:
            trees = None if root.is_private else self._overlay.trees(before, after, root)
            if trees is not None:
                yield from differences(*trees, self._overlay.get, None)
