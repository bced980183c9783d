"""The trees behind checkpoints, as `checkpoint` and `checkpoints` count them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from turnlog.cli.draw.change import count_changes
from turnlog.errors import Corrupt, NotFound
from turnlog.log.entry import Checkpoint
from turnlog.store import Store
from turnlog.thread.overlay import Overlay
from turnlog.workspace.diff import Difference, differences
from turnlog.workspace.tree import FILE, FOLDER, LINK, UNKNOWN, Tree, TreeNode


class Weight(NamedTuple):
    """How much is in a tree. Links count as files."""

    files: int
    size_bytes: int


class Trees:
    """The trees behind checkpoints: how much is in them, and how many paths differ."""

    def __init__(self, store: Store) -> None:
        self._overlay = Overlay(store.get)
        self._weights: dict[str, Weight] = {}

    def weight(self, checkpoint: Checkpoint) -> Weight | None:
        """Return how much is in a checkpoint; None if a tree cannot be read."""
        try:
            trees = [self._overlay.tree(checkpoint, root) for root in checkpoint.roots if not root.is_private]
            weights = [self._weight_of(tree) for tree in trees if tree is not None]
        except (Corrupt, NotFound):
            return None
        return _sum(weights)

    def _weight(self, digest: str) -> Weight:
        if digest not in self._weights:
            self._weights[digest] = self._weight_of(self._overlay.get(digest))
        return self._weights[digest]

    def _weight_of(self, tree: Tree) -> Weight:
        return _sum(self._weight_of_node(node) for node in tree.values())

    def _weight_of_node(self, node: TreeNode) -> Weight:
        if node.kind == UNKNOWN:  # it is in the folder, and not in the checkpoint
            return Weight(0, 0)
        if node.kind == FOLDER:
            return self._weight(node.digest)
        return Weight(1 if node.kind in (FILE, LINK) else 0, node.size)

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


def _sum(weights: Iterable[Weight]) -> Weight:
    files = size_bytes = 0
    for weight in weights:
        files, size_bytes = files + weight.files, size_bytes + weight.size_bytes
    return Weight(files, size_bytes)
