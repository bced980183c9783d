"""The versions of a file at checkpoints. Only the folders on its path are read, each once."""

from __future__ import annotations

import os
from functools import lru_cache

from turnlog.errors import Corrupt, NotFound
from turnlog.log.part import Root, private_root
from turnlog.log.path import is_at_or_below, path_bytes
from turnlog.rewind.snapshot import WORKSPACE
from turnlog.rewind.timeline import NOT_RECORDED, Sighting
from turnlog.store import Store
from turnlog.workspace.ignore.outside import load_rules
from turnlog.workspace.ignore.rule import was_covered
from turnlog.workspace.ignoredscan import NEVER_KEPT
from turnlog.workspace.tree import (
    FILE,
    FOLDER,
    Tree,
    TreeNode,
    changes,
    decode_one,
    decode_tree,
    files,
    is_unknown,
)

LARGEST_BYTES = 16 << 20
_SEARCHED_BYTES = 8000


class Versions:
    """The versions of files, by their absolute paths."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tree = lru_cache(1024)(self._decoded)
        self._node = lru_cache(None)(self._find)
        self._blob = lru_cache(8)(store.get)
        self.lines = lru_cache(8)(self._lines)

    def at(self, sighting: Sighting, path: bytes) -> TreeNode | None:
        """The file at a sighting; None if it did not exist, `NOT_RECORDED` if the checkpoint has no information."""
        try:
            return self._at(sighting, path)
        except (NotFound, Corrupt):
            return NOT_RECORDED

    def _at(self, sighting: Sighting, path: bytes) -> TreeNode | None:
        roots = sighting.roots(path)
        if not roots:
            return NOT_RECORDED
        root, inside = roots[0]
        node = self._node_in(sighting, root, inside)
        if node is None and self._leaves_out(sighting, root, inside):
            return NOT_RECORDED
        if is_unknown(node) or (node is not None and node.kind == FILE and node.size > LARGEST_BYTES):
            return NOT_RECORDED
        return node if node is not None and node.kind == FILE else None

    def _node_in(self, sighting: Sighting, root: Root, inside: bytes) -> TreeNode | None:
        return self._below(root.tree, inside) or self._ignored(sighting, root, inside)

    def _below(self, tree: str, path: bytes) -> TreeNode | None:
        *folders, name = path.split(b"/")
        for folder in folders:
            node = self._node(tree, folder)
            if node is None or node.kind != FOLDER:
                return node if is_unknown(node) else None
            tree = node.digest
        return self._node(tree, name)

    def _decoded(self, tree: str) -> Tree:
        return decode_tree(self._store.get(tree))

    def _find(self, tree: str, name: bytes) -> TreeNode | None:
        return decode_one(self._blob(tree), name)

    def _ignored(self, sighting: Sighting, root: Root, inside: bytes) -> TreeNode | None:
        private = private_root(sighting.checkpoint.roots, root)
        if private is None:
            return None
        try:
            return self._below(private.tree, inside)
        except NotFound:
            return None  # it is in another home

    def is_ignored(self, sighting: Sighting, path: bytes) -> bool:
        """Whether a checkpoint has the file among the ignored ones."""
        return any(
            self._below(root.tree, inside) is None and self._ignored(sighting, root, inside) is not None
            for root, inside in sighting.roots(path)
        )

    def is_left_out(self, sighting: Sighting, path: bytes) -> bool:
        """Whether a checkpoint without the file would not have covered it, because of an ignore rule."""
        return any(
            self._node_in(sighting, root, inside) is None and self._leaves_out(sighting, root, inside)
            for root, inside in sighting.roots(path)[:1]
        )

    def _leaves_out(self, sighting: Sighting, root: Root, inside: bytes) -> bool:
        """The same for one root that has no node there."""
        if root.is_partial or is_at_or_below(inside, set(map(path_bytes, root.tracked))):
            return False
        covers_ignored = any(one.is_private for one in sighting.checkpoint.roots)
        if covers_ignored and NEVER_KEPT.isdisjoint(inside.split(b"/")):
            return False
        rules = load_rules(self._store.get(root.rules)) if root.rules else []
        return not was_covered(self._tree(root.tree), inside, rules, self._tree, self._store.get)

    def _lines(self, digest: str) -> tuple[bytes, ...] | None:
        try:
            return lines_of(self._store.get(digest))
        except (NotFound, Corrupt):
            return None

    def gone_between(self, older: Sighting, newer: Sighting) -> list[tuple[bytes, TreeNode]]:
        """The files of the older sighting that are missing or changed in the newer one, by their paths."""
        folder = max(older.workspace, newer.workspace, key=len)
        try:
            before, after = self._folder(older, folder), self._folder(newer, folder)
            differing = list(changes(before, after, self._tree, folder))
        except (NotFound, Corrupt):
            return []
        return [(path, old) for path, old, new in differing if old is not None and _is_gone_or_changed(old, new)]

    def gone_now(self, older: Sighting) -> list[tuple[bytes, TreeNode]]:
        """The files of a sighting that do not exist now."""
        try:
            before = list(files(self._folder(older, older.workspace), self._tree, older.workspace))
        except (NotFound, Corrupt):
            return []
        return [(path, node) for path, node in before if node.kind == FILE and not os.path.lexists(path)]

    def _folder(self, sighting: Sighting, folder: bytes) -> Tree:
        """The workspace of a sighting, or the folder inside it with this path."""
        root = next(
            (root for root in sighting.checkpoint.roots if root.name == WORKSPACE and not root.is_private), None
        )
        if root is None or not folder.startswith(sighting.workspace):
            return {}
        inside = folder[len(sighting.workspace) :].rstrip(b"/")
        node = self._below(root.tree, inside) if inside else TreeNode(FOLDER, digest=root.tree)
        return self._tree(node.digest) if node is not None and node.kind == FOLDER else {}


def _is_gone_or_changed(old: TreeNode, new: TreeNode | None) -> bool:
    return old.kind == FILE and (new is None or new.digest != old.digest)


def lines_of(data: bytes) -> tuple[bytes, ...] | None:
    """The lines of a text, without line ends; None if it is not a text."""
    if b"\0" in data[:_SEARCHED_BYTES]:
        return None
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return tuple(lines)
