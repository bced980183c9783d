"""What changed between two checkpoints of a session, or in one of its turns, for people."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

from turnlog.log.entry import Checkpoint
from turnlog.log.part import Root, covers, is_imported, same_root
from turnlog.rewind.attribution import Attribution
from turnlog.rewind.files import Files
from turnlog.rewind.others import work_of_others
from turnlog.rewind.snapshot import WORKSPACE, workspace_of, workspace_prefix
from turnlog.rewind.span import Span
from turnlog.workspace.diff import Difference, differences
from turnlog.workspace.tree import Tree, lookup, path_bytes


def differences_between(files: Files, before: Checkpoint, after: Checkpoint, *, lines: bool = True) -> list[Difference]:
    """What changed between two checkpoints; without `lines`, only the kind of change of each path."""
    before = files.filled(before, after)
    covered = {path_bytes(root.path) for root in before.roots if root.name != WORKSPACE}
    changed: list[Difference] = []
    for root in before.roots:
        if not root.is_private:
            in_root = _differences_in(files, root, before, after, lines=lines)
            # A repository in the workspace that is covered itself is reported by its own root.
            changed += [item for item in in_root if root.name != WORKSPACE or _absolute(root, item) not in covered]
    return changed


def differences_of(files: Files, work: Span, *, lines: bool) -> list[Difference]:
    """The net change of a stretch of work, without what other sessions certainly made at the same time."""
    before, after = work.begin, work.end or files.look()
    changed = differences_between(files, before, after, lines=lines)
    others = {theirs.session for theirs in work_of_others(files.store, files.history, before, after)}
    if not others or not changed:
        return changed
    attribution = Attribution(files, others, before, after)
    folder = workspace_prefix(files.history.state)
    return [item for item in changed if attribution.is_ours(os.path.join(folder, path_bytes(item.path))) is not False]


def _differences_in(
    files: Files, root: Root, before: Checkpoint, after: Checkpoint, *, lines: bool
) -> Iterator[Difference]:
    """The differences in one folder that both checkpoints cover."""
    overlay, trees = files.overlay, files.overlay.trees(before, after, root)
    if trees is None:
        return
    private = [tree for end in (before, after) if (tree := overlay.private(end, root)) is not None]

    def is_private(path: bytes) -> bool:
        return any(_has(files, tree, path) for tree in private)

    lead, content = _lead(files, root), partial(files.content, root) if lines else None
    later = same_root(after.roots, root) or root
    for item in differences(*trees, overlay.get, content, is_private, lead):
        path = path_bytes(item.path).removeprefix(lead)
        # Of a file that only one of the two covers, nothing is known.
        is_covered = _covers(files, root, path, later) and _covers(files, later, path, root)
        if is_covered and not (
            (item.before is None and overlay.is_left_out(before, root, path))
            or (item.after is None and overlay.is_left_out(after, later, path))
        ):
            yield item


def _covers(files: Files, root: Root, path: bytes, other: Root) -> bool:
    """Whether a checkpoint covers a path.

    One of another agent lists no tracked files: it covers those in its tree, and is complete beside another such one.
    """
    if is_imported(root):
        return other.is_partial or _has(files, files.overlay.get(root.tree), path)
    return covers(root, path)


def _has(files: Files, tree: Tree, path: bytes) -> bool:
    return lookup(tree, path, files.overlay.get) is not None


def _lead(files: Files, root: Root) -> bytes:
    """What stands before the paths of a root: from the workspace, or absolute."""
    workspace = workspace_of(files.history.state)
    if root.name == WORKSPACE:
        return b""
    path = path_bytes(f"{root.path}/")
    return path if workspace is None else path.removeprefix(path_bytes(f"{workspace}/"))


def _absolute(root: Root, item: Difference) -> bytes:
    return path_bytes(f"{root.path}/") + path_bytes(item.path)
