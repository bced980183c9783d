"""The folder of a checkpoint as one tree: the tree of the workspace, and the ignored files beside it.

They are stored apart because the contents of ignored files stay in this home. Callers see one tree, because a changed
ignore rule moves a file between the two without changing it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from msgspec.structs import replace

from turnlog.errors import Corrupt, NotFound
from turnlog.log.entry import Checkpoint
from turnlog.log.part import Root, private_root, same_root
from turnlog.log.path import is_at_or_below, path_bytes
from turnlog.workspace.ignore.outside import load_rules
from turnlog.workspace.ignore.rule import was_covered
from turnlog.workspace.ignoredscan import NEVER_KEPT
from turnlog.workspace.tree import FOLDER, GetTree, Tree, decode_tree, lookup


class Overlay:
    """Trees by their digests, and trees laid over each other."""

    def __init__(self, load: Callable[[str], bytes]) -> None:
        self._load = load
        self._both: dict[str, tuple[str, str]] = {}
        self.get: GetTree = lru_cache(4096)(self._get)

    def _get(self, name: str) -> Tree:
        if name in self._both:
            upper, lower = self._both[name]
            return self._laid_over(self.get(upper), self.get(lower))
        return decode_tree(self._load(name))

    def tree(self, checkpoint: Checkpoint, root: Root) -> Tree | None:
        """The tree of a folder in a checkpoint; None if the checkpoint does not cover it."""
        own, private = self._own(checkpoint, root), self.private(checkpoint, root)
        return own if own is None or private is None else self._laid_over(own, private)

    def trees(self, before: Checkpoint, after: Checkpoint, root: Root) -> tuple[Tree, Tree] | None:
        """The trees of a folder in two checkpoints, to be compared."""
        look = self.comparable(before, after, root)
        old, new = look(before, root), look(after, root)
        return None if old is None or new is None else (old, new)

    def comparable(
        self, before: Checkpoint, after: Checkpoint, root: Root
    ) -> Callable[[Checkpoint, Root], Tree | None]:
        """A function that reads trees of two checkpoints for comparison: with ignored files only if both have them."""
        is_alike = (self.private(before, root) is None) == (self.private(after, root) is None)
        return self.tree if is_alike else self._own

    def _own(self, checkpoint: Checkpoint, root: Root) -> Tree | None:
        own = same_root(checkpoint.roots, root)
        return None if own is None else self.get(own.tree)

    def private(self, checkpoint: Checkpoint, root: Root) -> Tree | None:
        """The ignored files of a folder; None if they are unknown: not covered, or in another home."""
        own = private_root(checkpoint.roots, root)
        if own is None:
            return None
        try:
            return self.get(own.tree)
        except NotFound:
            return None

    def _laid_over(self, upper: Tree, lower: Tree) -> Tree:
        tree = {**lower, **upper}
        for name in upper.keys() & lower.keys():
            above, below = upper[name], lower[name]
            if above.kind == below.kind == FOLDER:
                both = f"{above.digest} over {below.digest}"
                self._both[both] = above.digest, below.digest
                tree[name] = replace(above, digest=both)
        return tree

    def did_not_exist(self, checkpoint: Checkpoint, root: Root, path: bytes) -> bool:
        """Whether a path that is not in the tree of this root of a checkpoint did not exist, and was not left out."""
        if is_at_or_below(path, set(map(path_bytes, root.tracked))):
            return True
        if root.is_partial:
            return False
        if self.is_proved_absent(self.private(checkpoint, root), path):
            return True
        rules = load_rules(self._load(root.rules)) if root.rules else []
        return was_covered(self.get(root.tree), path, rules, self.get, self._load)

    def is_left_out(self, checkpoint: Checkpoint, root: Root, path: bytes) -> bool:
        """Whether a path that is covered, but not in the tree of this root, was left out by ignore rules."""
        try:
            return not root.is_partial and not self.did_not_exist(checkpoint, root, path)
        except (NotFound, Corrupt):
            return False  # the ignore rules are not known here

    def is_proved_absent(self, private: Tree | None, path: bytes) -> bool:
        """Whether a path that is not in the workspace's tree did not exist: not among the ignored files either."""
        if private is None or NEVER_KEPT.intersection(path.split(b"/")):
            return False
        return lookup(private, path, self.get) is None
