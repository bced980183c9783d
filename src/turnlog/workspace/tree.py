"""A folder as a value: one node per name, one digest for the whole. Pure.

Digests make it a Merkle tree: a folder that did not change has the digest it had, and costs nothing to keep.
"""

# Without `from __future__ import annotations`, as in `log/entry.py`.

from collections.abc import Callable, Iterator

import msgspec
from msgspec import Struct

from turnlog.errors import Corrupt, Unsupported
from turnlog.log.path import path_bytes as path_bytes
from turnlog.log.path import path_text as path_text

FILE, LINK, FOLDER, UNKNOWN = "file", "link", "folder", "unknown"
_PAIR = b"\x92"
"""How a name and its node begin in a tree."""
MAGIC = b"TREE1\n"
"""What every tree begins with."""


Owner = tuple[int, int]
"""User and group."""


class Extra(Struct, array_like=True, frozen=True, gc=False):
    """What a file has beside its content and its mode. Kept where there is any: most files have none."""

    owner: Owner | None = None
    """Where it is not that of the folder which the checkpoint covers."""
    attributes: tuple[tuple[bytes, bytes], ...] = ()


class TreeNode(Struct, array_like=True, frozen=True, gc=False):
    """One name in a folder. Names and link targets are bytes: file systems promise no more."""

    kind: str
    mode: int = 0
    """Permission bits."""
    digest: str = ""
    """Of the content, or of the tree below."""
    size: int = 0
    target: bytes = b""
    """Where a link points; of an unknown one that is ignored, what tells whether it changed."""
    reason: str = ""
    """Why an unknown one is not covered."""
    extra: Extra | None = None
    """Owner and extended attributes, where there is anything to tell."""


Tree = dict[bytes, TreeNode]
_Rows = list[tuple[bytes, TreeNode]]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Rows).decode
_decode_node = msgspec.msgpack.Decoder(TreeNode).decode
GetTree = Callable[[str], Tree]


def encode_tree(tree: Tree) -> bytes:
    """A folder as bytes; the same folder always gives the same ones."""
    return MAGIC + _encode([(name, _row(node)) for name, node in sorted(tree.items())])


def _row(node: TreeNode) -> TreeNode | tuple[str, int, str, int, bytes, str]:
    """Without what most nodes have nothing of: the same folder has the digest it always had."""
    if node.extra is not None:
        return node
    return node.kind, node.mode, node.digest, node.size, node.target, node.reason


def decode_tree(data: bytes) -> Tree:
    """A folder from its bytes."""
    if not data.startswith(MAGIC):
        if data.startswith(b"TREE"):
            raise Unsupported("a checkpoint was written by a newer Turnlog", hint="upgrade Turnlog; nothing is damaged")
        raise Corrupt("a blob that should be a tree is not one")
    try:
        return dict(_decode(data[len(MAGIC) :]))
    except (msgspec.DecodeError, RecursionError):
        raise Corrupt("a blob that should be a tree cannot be read") from None


def decode_one(data: bytes, name: bytes) -> TreeNode | None:
    """One name in a folder from its bytes, quicker than all of them; None if it is not there."""
    row = _PAIR + _encode(name)
    begin = data.find(row)
    if begin < 0 and data.startswith(MAGIC):
        return None
    begin += len(row)
    end = begin
    while data.startswith(MAGIC) and data.find(row, begin) < 0 and end < len(data):
        end = data.find(_PAIR, end + 1)
        end = len(data) if end < 0 else end
        try:
            return _decode_node(data[begin:end])
        except msgspec.DecodeError:
            continue  # it did not end there
    return decode_tree(data).get(name)  # several that look like it: only one of them is


def files(tree: Tree, get: GetTree, prefix: bytes = b"") -> Iterator[tuple[bytes, TreeNode]]:
    """Every node below a folder with its path, folders before what is in them."""
    for name, node in sorted(tree.items()):
        path = prefix + name
        yield path, node
        if node.kind == FOLDER:
            yield from files(get(node.digest), get, path + b"/")


def lookup(tree: Tree, path: bytes, get: GetTree) -> TreeNode | None:
    """The node at a path; None if there is none. What lies below an unknown node is unknown, too."""
    node: TreeNode | None = None
    for index, name in enumerate(path.split(b"/")):
        if index:
            if node is None or node.kind == UNKNOWN:
                return node
            if node.kind != FOLDER:
                return None
            tree = get(node.digest)
        node = tree.get(name)
    return node


def changes(
    before: Tree, after: Tree, get: GetTree, prefix: bytes = b""
) -> Iterator[tuple[bytes, TreeNode | None, TreeNode | None]]:
    """Every path that differs, with what was there before and after.

    Equal folders are not looked into, and neither is one that is unknown on the other side.
    """
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        path = prefix + name
        inside = old is not None and old.kind == FOLDER, new is not None and new.kind == FOLDER
        if inside == (False, False) or old is None or new is None or _differ(old, new) or inside[0] != inside[1]:
            yield path, old, new
        is_unknown = any(node is not None and node.kind == UNKNOWN for node in (old, new))
        if any(inside) and not is_unknown:
            old_tree = get(old.digest) if old is not None and inside[0] else {}
            new_tree = get(new.digest) if new is not None and inside[1] else {}
            yield from changes(old_tree, new_tree, get, path + b"/")


def _differ(one: TreeNode, other: TreeNode) -> bool:
    return (one.mode, one.extra) != (other.mode, other.extra)
