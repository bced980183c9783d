"""The results of the last scan, so that unchanged files are not read again. Derived: losing it costs only time.

Each folder is one record with its parts as bytes: whether a folder changed is decided by comparing two of them, and
20,000 files are loaded in a millisecond.
"""

# Without `from __future__ import annotations`, as in `log/entry.py`.

import os
import stat
import sys
from array import array
from collections.abc import Sequence
from zlib import crc32

import msgspec
from msgspec import Struct

from turnlog.log.codec import BAD_JSON
from turnlog.workspace.tree import Extra

VERSION = 4
WIDTH = 32
"""The length of a digest in bytes."""
_SIGNATURE_BYTES = 5 * 8
"""A signature is five numbers, which show whether a file changed: size, mtime, ctime, inode and mode."""
NO_DIGEST = bytes(WIDTH)
"""The placeholder for a missing digest, or that of a file which changed too recently."""

IS_FILE, IS_FOLDER, IS_PARTIAL_FOLDER, IS_LINK, IS_IGNORED, IS_UNKNOWN = b"fdpliu"
"""The kinds of a name. In a partial folder only tracked files are covered."""


class CachedName(Struct, frozen=True, gc=False):
    """What the last scan knows of a name."""

    kind: int
    signature: bytes
    digest: bytes
    """`NO_DIGEST` if it cannot be relied on."""

    @property
    def is_folder(self) -> bool:
        """Whether it was a folder, covered or not."""
        return stat.S_ISDIR(mode_in(self.signature))


class SeenFolder(Struct, array_like=True, gc=False):
    """A folder as the last scan saw it. Names, kinds, signatures and digests are in the order of the listing."""

    above: bytes
    """The key of the rules from the folders above."""
    rules: bytes
    """The key of the rules that apply inside the folder."""
    names: bytes
    kinds: bytes
    signatures: bytes
    digests: bytes
    tree: str
    """The digest of the folder as a tree."""
    is_settled: bool
    """Whether everything in it was readable, and old enough to be relied on."""
    skipped: list[tuple[bytes, str, int]]
    """The names that are not covered, with reason and size."""
    files: int
    size: int
    extras: dict[str, Extra] = {}
    """Owners and attributes of the names that have some."""

    def by_name(self) -> dict[str, CachedName]:
        """Every name in the folder."""
        return {
            name: CachedName(kind, self.signature(i), self.digests[i * WIDTH : (i + 1) * WIDTH])
            for i, (name, kind) in enumerate(zip(names_from_bytes(self.names), self.kinds, strict=True))
        }

    def signature(self, index: int) -> bytes:
        """The signature of the name at this place in the listing."""
        return self.signatures[index * _SIGNATURE_BYTES : (index + 1) * _SIGNATURE_BYTES]


class SeenIgnored(Struct, array_like=True):
    """The covered ignored files as the last scan saw them."""

    tree: str = ""
    fingerprint: bytes = b""
    """A digest of everything in the tree except contents, to detect changes."""
    digests: dict[bytes, tuple[bytes, bytes]] = {}
    """The signature and digest of each file, if they can be relied on."""
    extras: dict[bytes, Extra] = {}


class Seen(Struct, array_like=True):
    """A whole tree as the last scan saw it."""

    version: int = VERSION
    packs: list[str] = []
    """The packs that held the contents. While all of them exist, so do all digests in the folders."""
    outside: tuple[bytes, str] = (b"", "")
    """The key of the rules from outside the tree, and the digest under which they are stored."""
    owner: tuple[int, int] = (-1, -1)
    """The owner of the root; other owners are stored as differences to it."""
    folders: dict[bytes, SeenFolder] = {}
    ignored: SeenIgnored = msgspec.field(default_factory=SeenIgnored)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Seen).decode


def decode_seen(data: bytes) -> Seen:
    """The last scan from bytes; empty if they are corrupt or of another version."""
    if crc32(data[4:]).to_bytes(4, "little") != data[:4]:
        return Seen()  # the file is not synced: after a crash, parts of it may be anything
    try:
        seen = _decode(data[4:])
    except BAD_JSON:
        return Seen()
    return seen if seen.version == VERSION else Seen()


def encode_seen(seen: Seen) -> bytes:
    """The bytes to cache until the next scan."""
    data = _encode(seen)
    return crc32(data).to_bytes(4, "little") + data


def names_to_bytes(names: list[str]) -> bytes:
    """Names as one byte string; no name contains a zero byte."""
    return os.fsencode("\0".join(names))


def names_from_bytes(names: bytes) -> list[str]:
    """The names from the result of `names_to_bytes`."""
    return os.fsdecode(names).split("\0") if names else []


def signature_bytes(numbers: Sequence[int]) -> bytes:
    """Signatures as bytes."""
    try:
        return array("q", numbers).tobytes()
    except OverflowError:  # an inode may be any 64-bit number
        return array("Q", [number & 0xFFFFFFFFFFFFFFFF for number in numbers]).tobytes()


def mode_in(signature: bytes) -> int:
    """The mode in a signature: its last number."""
    return int.from_bytes(signature[-8:], sys.byteorder)


def digest_bytes(digest: str) -> bytes:
    """A digest without its algorithm, as bytes."""
    return bytes.fromhex(digest[7:])


def digest_text(data: bytes) -> str:
    """The digest with these bytes."""
    return "sha256:" + data.hex()
