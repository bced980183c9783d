"""The files that a session changed, with what was in them before and after."""

from __future__ import annotations

import os
from collections.abc import Iterator

from turnlog.errors import NotFound
from turnlog.formats._shared.transcript import TouchedFile
from turnlog.log.entry import Checkpoint
from turnlog.log.part import Root, covers, same_root
from turnlog.thread.overlay import Overlay
from turnlog.thread.reader import SessionReader
from turnlog.workspace.tree import FILE, FOLDER, TreeNode, changes, lookup, path_bytes


def touched_files(session: SessionReader, after: int, *, include_ignored: bool) -> list[TouchedFile]:
    """The files that differ between the first checkpoint after an entry and the last one; see `Transcript.files`."""
    checkpoints = [entry for entry in session.checkpoints() if entry.seq > after and entry.origin is None]
    if not checkpoints:
        return []
    first, last = checkpoints[0], checkpoints[-1]
    overlay = Overlay(session.blob)
    files: list[TouchedFile] = []
    for root in last.roots:
        earlier = None if root.is_private else same_root(first.roots, root)
        if earlier is None:
            continue  # the ignored files of a folder are compared with the folder
        private = [tree for end in (first, last) if (tree := overlay.private(end, root)) is not None]
        for path, old, new in _differences(overlay, first, last, earlier, root):
            is_ignored = any(lookup(tree, path, overlay.get) is not None for tree in private)
            has_content = include_ignored or not is_ignored
            where = os.path.join(os.fsdecode(path_bytes(root.path)), os.fsdecode(path))
            file = TouchedFile(where, None, None, last.at, is_private=not has_content)
            files.append(_with_content(session, file, old, new) if has_content else file)
    return files


def _differences(
    overlay: Overlay, first: Checkpoint, last: Checkpoint, earlier: Root, later: Root
) -> Iterator[tuple[bytes, TreeNode | None, TreeNode | None]]:
    """The files of a folder that differ between two checkpoints, as far as both cover them."""
    trees = overlay.trees(first, last, later)
    if trees is None:
        return
    for path, old, new in changes(*trees, overlay.get):
        if FOLDER in (old.kind if old else "", new.kind if new else ""):
            continue  # the files in a folder are reported
        # Of a file that only one of the two covers, nothing is known.
        if not covers(earlier, path) or not covers(later, path):
            continue
        if old is None and overlay.is_left_out(first, earlier, path):
            continue
        if new is not None or not overlay.is_left_out(last, later, path):
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
