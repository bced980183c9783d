"""What a file was when a checkpoint was taken. Only the folders on its path are read, each once."""

from __future__ import annotations

import os
from functools import lru_cache

from turnlog.errors import Corrupt, NotFound
from turnlog.log.entry import Root
from turnlog.rewind.overlay import private_root
from turnlog.rewind.snapshot import WORKSPACE, load_rules
from turnlog.rewind.timeline import Sighting
from turnlog.store import Store
from turnlog.workspace.ignore import was_covered
from turnlog.workspace.ignored import NEVER_KEPT
from turnlog.workspace.tree import (
    FILE,
    FOLDER,
    UNKNOWN,
    Tree,
    TreeNode,
    changes,
    decode_one,
    decode_tree,
    files,
)

LARGEST_BYTES = 16 << 20
UNTOLD = TreeNode(UNKNOWN)
"""The checkpoint does not cover this file."""
_LOOKED_AT = 8000


class Versions:
    """The versions of files, by their paths from the root."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tree = lru_cache(1024)(self._decoded)
        self._node = lru_cache(None)(self._find)
        self._blob = lru_cache(8)(store.get)
        self.lines = lru_cache(8)(self._lines)

    def at(self, sighting: Sighting, path: bytes) -> TreeNode | None:
        """The file at a sighting; None where it was not there, `UNTOLD` where that checkpoint does not say."""
        try:
            return self._at(sighting, path)
        except (NotFound, Corrupt):
            return UNTOLD

    def _at(self, sighting: Sighting, path: bytes) -> TreeNode | None:
        node: TreeNode | None = UNTOLD
        for root, inside in sighting.roots(path):
            node = self._below(root.tree, inside)
            if node is None:
                node = self._ignored(sighting, root, inside)
            break
        if node is not None and (node.kind == UNKNOWN or (node.kind == FILE and node.size > LARGEST_BYTES)):
            return UNTOLD
        return node if node is not None and node.kind == FILE else None

    def _below(self, tree: str, path: bytes) -> TreeNode | None:
        *folders, name = path.split(b"/")
        for folder in folders:
            node = self._node(tree, folder)
            if node is None or node.kind != FOLDER:
                return node if node is not None and node.kind == UNKNOWN else None
            tree = node.digest
        return self._node(tree, name)

    def _decoded(self, tree: str) -> Tree:
        return decode_tree(self._store.get(tree))

    def _find(self, tree: str, name: bytes) -> TreeNode | None:
        return decode_one(self._blob(tree), name)

    def _ignored(self, sighting: Sighting, root: Root, inside: bytes) -> TreeNode | None:
        private = private_root(sighting.checkpoint, root)
        if private is None:
            return None
        try:
            return self._below(private.tree, inside)
        except NotFound:
            return None  # it is in another home

    def is_ignored(self, sighting: Sighting, path: bytes) -> bool:
        """Whether a checkpoint has that file among those that git would ignore."""
        return any(
            self._below(root.tree, inside) is None and self._ignored(sighting, root, inside) is not None
            for root, inside in sighting.roots(path)
        )

    def is_left_out(self, sighting: Sighting, path: bytes) -> bool:
        """Whether a checkpoint that has no such file would not have had it: a rule leaves it out."""
        covers_ignored = any(one.is_private for one in sighting.checkpoint.roots)
        for root, inside in sighting.roots(path):
            rules = load_rules(self._store.get(root.rules)) if root.rules else []
            if not was_covered(self._tree(root.tree), inside, rules, self._tree, self._store.get):
                return not covers_ignored or not NEVER_KEPT.isdisjoint(inside.split(b"/"))
        return False

    def _lines(self, digest: str) -> tuple[bytes, ...] | None:
        try:
            return lines_of(self._store.get(digest))
        except (NotFound, Corrupt):
            return None

    def gone_between(self, older: Sighting, newer: Sighting) -> list[tuple[bytes, TreeNode]]:
        """Files that the older sighting has, and the newer one not, or not as they were, by their paths."""
        folder = max(older.place, newer.place, key=len)
        try:
            before, after = self._folder(older, folder), self._folder(newer, folder)
            differing = list(changes(before, after, self._tree, folder))
        except (NotFound, Corrupt):
            return []
        return [(path, old) for path, old, new in differing if old is not None and _is_other(old, new)]

    def gone_now(self, older: Sighting) -> list[tuple[bytes, TreeNode]]:
        """Files that a sighting has and that are not there now."""
        try:
            before = list(files(self._folder(older, older.place), self._tree, older.place))
        except (NotFound, Corrupt):
            return []
        return [(path, node) for path, node in before if node.kind == FILE and not os.path.lexists(path)]

    def _folder(self, sighting: Sighting, folder: bytes) -> Tree:
        """The workspace of a sighting, or the folder in it that lies in that place."""
        root = next(
            (root for root in sighting.checkpoint.roots if root.name == WORKSPACE and not root.is_private), None
        )
        if root is None or not folder.startswith(sighting.place):
            return {}
        inside = folder[len(sighting.place) :].rstrip(b"/")
        node = self._below(root.tree, inside) if inside else TreeNode(FOLDER, digest=root.tree)
        return self._tree(node.digest) if node is not None and node.kind == FOLDER else {}


def _is_other(old: TreeNode, new: TreeNode | None) -> bool:
    return old.kind == FILE and (new is None or new.digest != old.digest)


def lines_of(data: bytes) -> tuple[bytes, ...] | None:
    """The lines of a text, without their ends; None for what is no text."""
    if b"\0" in data[:_LOOKED_AT]:
        return None
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return tuple(lines)
