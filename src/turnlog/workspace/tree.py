"""A folder as a value: one node per name, one digest for the whole. Pure.

Digests make it a Merkle tree: an unchanged folder keeps its digest, and storing it costs nothing.
"""

# Without `from __future__ import annotations`, as in `log/entry.py`.

from collections.abc import Callable, Iterator

import msgspec
from msgspec import Struct

from turnlog.errors import Corrupt, Unsupported
from turnlog.log.codec import BAD_JSON
from turnlog.log.path import path_bytes as path_bytes
from turnlog.log.path import path_text as path_text

FILE, LINK, FOLDER, UNKNOWN = "file", "link", "folder", "unknown"
_PAIR = b"\x92"
"""The first byte of a name with its node in a tree."""
MAGIC = b"TREE1\n"
"""The first bytes of every tree."""


Owner = tuple[int, int]
"""User and group."""


class Extra(Struct, array_like=True, frozen=True, gc=False):
    """Metadata of a file besides content and mode. Most files have none."""

    owner: Owner | None = None
    """The owner, if it is not that of the covered folder."""
    attributes: tuple[tuple[bytes, bytes], ...] = ()


class TreeNode(Struct, array_like=True, frozen=True, gc=False):
    """One name in a folder. Names and link targets are bytes: file systems promise no more."""

    kind: str
    mode: int = 0
    """Permission bits."""
    digest: str = ""
    """The digest of the content, or of the subtree."""
    size: int = 0
    target: bytes = b""
    """The target of a link; for an unknown ignored node, a mark to detect changes."""
    reason: str = ""
    """Why an unknown node is not covered."""
    extra: Extra | None = None
    """Owner and extended attributes, if there are any."""


Tree = dict[bytes, TreeNode]
_Rows = list[tuple[bytes, TreeNode]]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Rows).decode
_decode_names = msgspec.msgpack.Decoder(list[tuple[bytes, msgspec.Raw]]).decode
_decode_node = msgspec.msgpack.Decoder(TreeNode).decode
GetTree = Callable[[str], Tree]


def encode_tree(tree: Tree) -> bytes:
    """A folder as bytes; equal folders give equal bytes."""
    return MAGIC + _encode([(name, _row(node)) for name, node in sorted(tree.items())])


def _row(node: TreeNode) -> TreeNode | tuple[str, int, str, int, bytes, str]:
    """The row without an empty `extra`, so that digests stay the same as before that field existed."""
    if node.extra is not None:
        return node
    return node.kind, node.mode, node.digest, node.size, node.target, node.reason


def decode_tree(data: bytes) -> Tree:
    """A folder from its bytes."""
    try:
        return dict(_decode(_rows_of(data)))
    except BAD_JSON:
        raise _unreadable() from None


def decode_one(data: bytes, name: bytes) -> TreeNode | None:
    """One name of an encoded folder, faster than decoding all; None if it is not there."""
    rows = _rows_of(data)
    if _PAIR + _encode(name) not in rows:
        return None
    try:
        # Bytes that look like the row may also be in another name, the target of a link or an attribute.
        node = dict(_decode_names(rows)).get(name)
        return None if node is None else _decode_node(node)
    except BAD_JSON:
        raise _unreadable() from None


def _rows_of(data: bytes) -> bytes:
    """The encoded rows of a tree, without `MAGIC`."""
    if data.startswith(MAGIC):
        return data[len(MAGIC) :]
    if data.startswith(b"TREE"):
        raise Unsupported("a checkpoint was written by a newer Turnlog", hint="upgrade Turnlog; nothing is damaged")
    raise Corrupt("a blob that should be a tree is not one")


def _unreadable() -> Corrupt:
    return Corrupt("a blob that should be a tree cannot be read")


def files(tree: Tree, get: GetTree, prefix: bytes = b"") -> Iterator[tuple[bytes, TreeNode]]:
    """Every node below a folder with its path, folders before their content."""
    for name, node in sorted(tree.items()):
        path = prefix + name
        yield path, node
        if node.kind == FOLDER:
            yield from files(get(node.digest), get, path + b"/")


def is_folder(node: TreeNode | None) -> bool:
    """Whether there is a folder."""
    return node is not None and node.kind == FOLDER


def is_unknown(node: TreeNode | None) -> bool:
    """Whether nothing is known of what is there."""
    return node is not None and node.kind == UNKNOWN


def lookup(tree: Tree, path: bytes, get: GetTree) -> TreeNode | None:
    """The node at a path; None if there is none. Everything below an unknown node is unknown, too."""
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
    """Every path that differs, with its nodes before and after.

    Equal folders are not entered, nor is a folder that is unknown on the other side.
    """
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        path = prefix + name
        inside = is_folder(old), is_folder(new)
        if inside == (False, False) or old is None or new is None or _differ(old, new) or inside[0] != inside[1]:
            yield path, old, new
        if any(inside) and not is_unknown(old) and not is_unknown(new):
            old_tree = get(old.digest) if old is not None and inside[0] else {}
            new_tree = get(new.digest) if new is not None and inside[1] else {}
            yield from changes(old_tree, new_tree, get, path + b"/")


def _differ(one: TreeNode, other: TreeNode) -> bool:
    return (one.mode, one.extra) != (other.mode, other.extra)
