"""The files that a session changed, with what was in them before and after."""

from __future__ import annotations

import os
from collections.abc import Iterator

from turnlog.errors import NotFound
from turnlog.formats._shared.transcript import TouchedFile
from turnlog.log.entry import Checkpoint
from turnlog.log.part import Root, private_root, same_root
from turnlog.thread.reader import SessionReader
from turnlog.workspace.tree import FILE, FOLDER, Tree, TreeNode, changes, decode_tree, path_bytes


def touched_files(session: SessionReader, after: int, *, include_ignored: bool) -> list[TouchedFile]:
    """The files that differ between the first checkpoint after an entry and the last one; see `Transcript.files`."""
    checkpoints = [entry for entry in session.checkpoints() if entry.seq > after and entry.origin is None]
    files: list[TouchedFile] = []
    for root in checkpoints[-1].roots if checkpoints else ():
        has_content = include_ignored or not root.is_private
        for path, old, new in _differences(session, _earlier_root(checkpoints[0], checkpoints[-1], root), root):
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
        changed = [] if before is None else list(changes(tree(before.tree), tree(after.tree), tree))
    except NotFound:
        return  # ignored files of another home
    for path, old, new in changed:
        if FOLDER not in (old.kind if old else "", new.kind if new else ""):  # the files in a folder are reported
            yield path, old, new


def _with_content(session: SessionReader, file: TouchedFile, old: TreeNode | None, new: TreeNode | None) -> TouchedFile:
    before, after = _content(session, old), _content(session, new)
    is_known = (old is None or before is not None) and (new is None or after is not None)
    return TouchedFile(file.path, before, after, file.at, is_known)


def _content(session: SessionReader, node: TreeNode | None) -> bytes | None:
    """What is in a file; None if there is no file, or if its content is not known here."""
    try:
        return session.blob(node.digest) if node is not None and node.kind == FILE else None
    except NotFound:
        return None


def _earlier_root(earlier: Checkpoint, later: Checkpoint, root: Root) -> Root | None:
    """The root of an earlier checkpoint that is the same folder as this root of a later one."""
    if not root.is_private:
        return same_root(earlier.roots, root)
    owner = next((other for other in later.roots if other.path == root.path and not other.is_private), None)
    return None if owner is None else private_root(earlier.roots, owner)
