"""A tree of files of which only the texts are known."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from turnlog.log.payload import digest
from turnlog.workspace.tree import FILE, FOLDER, UNKNOWN, Tree, TreeNode, encode_tree


def text_tree(folder: str, files: Mapping[tuple[str, ...], str], blobs: list[bytes], why_empty: str) -> str:
    """The digest of a tree of these files, by their paths in the folder. Its blobs are added to `blobs`.

    An empty text may stand for a file that is not there: such a file is unknown, with `why_empty` as the reason. The
    permissions are those on the disk now, as nothing else is known of them.
    """
    tree: Tree = {}
    for name in dict.fromkeys(path[0] for path in files):
        path, data = os.path.join(folder, name), files.get((name,), "").encode("utf-8", "surrogatepass")
        if data:
            node = TreeNode(FILE, _mode(path, 0o644), _put(data, blobs), len(data))
        elif (name,) in files:
            node = TreeNode(UNKNOWN, reason=why_empty)
        else:
            below = {inner[1:]: text for inner, text in files.items() if inner[0] == name}
            node = TreeNode(FOLDER, _mode(path, 0o755), text_tree(path, below, blobs, why_empty))
        tree[os.fsencode(name)] = node
    return _put(encode_tree(tree), blobs)


def _mode(path: str, usual: int) -> int:
    try:
        return stat.S_IMODE(os.lstat(path).st_mode)
    except OSError:
        return usual


def _put(data: bytes, blobs: list[bytes]) -> str:
    blobs.append(data)
    return digest(data)
