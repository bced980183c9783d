"""The files that a session changed, with what was in them before and after."""

from __future__ import annotations

import os
from collections.abc import Iterator

from turnlog.errors import NotFound
from turnlog.formats._shared.transcript import TouchedFile
from turnlog.log.entry import Checkpoint
from turnlog.log.part import Root
from turnlog.thread.reader import SessionReader
from turnlog.workspace.tree import FILE, FOLDER, Tree, TreeNode, changes, decode_tree, path_bytes


def touched_files(session: SessionReader, after: int, *, include_ignored: bool) -> list[TouchedFile]:
    """The files that differ between the first checkpoint after an entry and the last one; see `Transcript.files`."""
    checkpoints = [entry for entry in session.checkpoints() if entry.seq > after and entry.origin is None]
    files: list[TouchedFile] = []
    for root in checkpoints[-1].roots if checkpoints else ():
        has_content = include_ignored or not root.is_private
        for path, old, new in _differences(session, _same_root(checkpoints[0], checkpoints[-1], root), root):
            where = os.path.join(os.fsdecode(path_bytes(root.path)), os.fsdecode(path))
            file = TouchedFile(where, None, None, checkpoints[-1].at, is_private=not has_content)
            files.append(_with_content(session, file, old, new) if has_content else file)
    return files


def _differences(
    session: SessionReader, before: Root | None, after: Root
) -> Iterator[tuple[bytes, TreeNode | None, TreeNode | None]]:
    """The files that differ between two states of a root; none if one of the states is not known here."""

    def tree(name: str) -> Tree:
        return decode_tree(session.blob(name))

    try:
        found = [] if before is None else list(changes(tree(before.tree), tree(after.tree), tree))
    except NotFound:
        return  # ignored files of another home
    for path, old, new in found:
        if FOLDER not in (old.kind if old else "", new.kind if new else ""):  # the files in a folder are reported
            yield path, old, new


def _with_content(session: SessionReader, file: TouchedFile, old: TreeNode | None, new: TreeNode | None) -> TouchedFile:
    (before, is_known_before), (after, is_known_after) = _content(session, old), _content(session, new)
    return TouchedFile(file.path, before, after, file.at, is_known_before and is_known_after)


def _content(session: SessionReader, node: TreeNode | None) -> tuple[bytes | None, bool]:
    """What is in a file, None if it does not exist, and whether that is known."""
    if node is None:
        return None, True
    try:
        return (session.blob(node.digest), True) if node.kind == FILE else (None, False)
    except NotFound:
        return None, False


def _same_root(earlier: Checkpoint, later: Checkpoint, root: Root) -> Root | None:
    """The root of an earlier checkpoint that is the same folder as this root of a later one, which may have moved.

    Those of ignored files all have one name: each belongs to the root with its path.
    """
    if not root.is_private:
        return next((one for one in earlier.roots if one.name == root.name and not one.is_private), None)
    owner = next((one for one in later.roots if one.path == root.path and not one.is_private), None)
    before = None if owner is None else _same_root(earlier, later, owner)
    return next(
        (one for one in earlier.roots if before is not None and one.is_private and one.path == before.path), None
    )
