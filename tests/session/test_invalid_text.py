"""Bytes that are not UTF-8, where we keep JSON or MessagePack of our own: as damaged as any others."""

import zlib
from pathlib import Path

import msgspec
import pytest

import turnlog
from turnlog import Corrupt
from turnlog.interop.copied import Copied, CopyOf
from turnlog.session.interior import interior
from turnlog.store import derived
from turnlog.store.broadcast import delta_of
from turnlog.thread.home.alias import session_of_alias
from turnlog.thread.home.handedover import HandedOver
from turnlog.thread.outline import Outline
from turnlog.workspace import cache
from turnlog.workspace.tree import FILE, MAGIC, TreeNode, decode_one, decode_tree, encode_tree

TEXT = b"\x91\xa1\xff"
"""A list with a text in MessagePack, which is no text."""


def test_a_tree_with_it_is_corrupt() -> None:
    bad = encode_tree({b"name": TreeNode(FILE, 0o644, "sha256:" + "0" * 64, 3)}).replace(b"sha256:", b"sha256\xff")
    with pytest.raises(Corrupt):
        decode_tree(bad)
    with pytest.raises(Corrupt):
        decode_one(bad, b"name")
    with pytest.raises(Corrupt):
        decode_tree(MAGIC + TEXT)


def test_what_is_kept_to_be_faster_is_made_again(tmp_path: Path) -> None:
    assert Outline.decode(zlib.compress(TEXT)) is None
    packed = b"\x00" + TEXT
    assert cache.decode_seen(zlib.crc32(packed).to_bytes(4, "little") + packed).version == cache.Seen().version
    with turnlog.open(tmp_path) as home:
        home.create(id="s")
        store = interior(home).store
        bad = msgspec.msgpack.encode([derived.load(store, "aliases-change"), {"a": "?"}])
        derived.save(store, "aliases", bad.replace(b"?", b"\xff"))
        assert session_of_alias(store, "claude", "nobody") is None


def test_a_line_with_it_is_left_out_of_the_list_of_copies(tmp_path: Path) -> None:
    handed = HandedOver(str(tmp_path))
    with handed.noting("pi", "one", Copied([CopyOf("s")])):
        pass
    [file] = tmp_path.iterdir()
    line = file.read_bytes()
    file.write_bytes(line.replace(b'"one"', b'"\xff"') + line)
    assert list(handed.all()) == [("pi", "one")]


def test_a_frame_with_it_is_no_delta() -> None:
    frame = msgspec.json.encode({"kind": "text", "text": "?", "index": 0, "id": "m"})
    assert delta_of(frame.replace(b"?", b"\xff")) is None
