"""Folders as values."""

from __future__ import annotations

import pytest

from turnlog.workspace.tree import FILE, LINK, Extra, TreeNode, decode_one, decode_tree, encode_tree

DIGEST = "sha256:" + "0" * 64
ROW = encode_tree({b"foo": TreeNode(FILE, 0o644, DIGEST, 1)})[7:]
"""A name with its node, as they are in a tree."""
SHORT_ROW = b"\x92\xc4\x03foo\x94\xa4file\x01\xa1x\x01\x92"


def test_one_name_is_decoded_as_in_the_whole_tree() -> None:
    tree = {
        b"bar": TreeNode(FILE, 0o755, DIGEST, 3, extra=Extra((0, 7), ((b"user.a", b"\0"),))),
        b"foo": TreeNode(FILE, 0o644, DIGEST, 1),
        b"link": TreeNode(LINK, target=b"foo"),
    }
    data = encode_tree(tree)
    assert {name: decode_one(data, name) for name in (*tree, b"fo", b"foobar")} == {
        **tree,
        b"fo": None,
        b"foobar": None,
    }


@pytest.mark.parametrize(
    ("name", "node"),
    [
        (b"a", TreeNode(LINK, target=SHORT_ROW)),
        (b"a", TreeNode(FILE, 0o644, DIGEST, extra=Extra(None, ((b"user.a", ROW),)))),
        (SHORT_ROW, TreeNode(FILE, 0o644, DIGEST)),
    ],
    ids=["target", "attribute", "name"],
)
def test_bytes_that_look_like_a_row_are_no_file(name: bytes, node: TreeNode) -> None:
    data = encode_tree({name: node, b"z": TreeNode(FILE, 0o644, DIGEST)})
    assert b"foo" not in decode_tree(data)
    assert decode_one(data, b"foo") is None
