"""What the last scan saw, so that an unchanged file is not read again. Derived: losing it costs time, nothing else.

One record per folder, its parts side by side as bytes: a folder where nothing happened is told by comparing two of
them, and 20,000 files are read from the disk in a millisecond.
"""

# Without `from __future__ import annotations`, as in `log/entry.py`.

import os
from array import array
from zlib import crc32

import msgspec
from msgspec import Struct

from turnlog.workspace.tree import Extra

VERSION = 4
WIDTH = 32
"""Of a digest."""
SIGNATURE = 5
"""Numbers that tell a file from what it was: size, mtime, ctime, inode and mode."""
NONE = bytes(WIDTH)
"""Placeholder for a missing digest, or one of a file changed too recently."""

IS_FILE, IS_FOLDER, IS_PARTIAL_FOLDER, IS_LINK, IS_IGNORED, IS_UNKNOWN = b"fdpliu"
"""What a name is; a folder is there partly where only what is tracked in it is covered."""


Known = tuple[int, bytes, bytes]
"""What was known of a name: its kind, its signature and its digest."""


class SeenFolder(Struct, array_like=True, gc=False):
    """A folder as the last scan saw it. Names, kinds, signatures and digests are in the order of the listing."""

    above: bytes
    """The key of the rules that came from above."""
    rules: bytes
    """The key of the rules that held in it."""
    names: bytes
    kinds: bytes
    signatures: bytes
    digests: bytes
    tree: str
    """The digest of the folder as a tree."""
    is_settled: bool
    """Whether nothing in it was too young to trust, or could not be read."""
    skipped: list[tuple[bytes, str, int]]
    """Names in it that are not covered, why, and their sizes."""
    files: int
    size: int
    extras: dict[str, Extra] = {}
    """What names have beside content and mode, for those that have any."""

    def known(self) -> dict[str, Known]:
        """Each name with its kind, its signature and its digest."""
        step = SIGNATURE * 8
        return {
            name: (kind, self.signatures[i * step : (i + 1) * step], self.digests[i * WIDTH : (i + 1) * WIDTH])
            for i, (name, kind) in enumerate(zip(split(self.names), self.kinds, strict=True))
        }


class SeenIgnored(Struct, array_like=True):
    """What was seen of ignored files that are covered."""

    tree: str = ""
    what: bytes = b""
    """Tells whether anything that is in that tree differs, but for the contents."""
    digests: dict[bytes, tuple[bytes, bytes]] = {}
    """Of each file its signature and its digest, if that can be relied on."""
    extras: dict[bytes, Extra] = {}


class Seen(Struct, array_like=True):
    """A whole tree as the last scan saw it."""

    version: int = VERSION
    packs: list[str] = []
    """What held the contents. While it is all still there, so is everything that the folders name."""
    outside: tuple[bytes, str] = (b"", "")
    """The key of the rules from outside the tree, and the digest they are kept under."""
    owner: tuple[int, int] = (-1, -1)
    """Of the root: owners are stored beside it."""
    folders: dict[bytes, SeenFolder] = {}
    ignored: SeenIgnored = msgspec.field(default_factory=SeenIgnored)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Seen).decode


def load(data: bytes) -> Seen:
    """What was seen, or nothing if these bytes do not say."""
    if crc32(data[4:]).to_bytes(4, "little") != data[:4]:
        return Seen()  # it was not synced: after a crash, parts of it may be anything
    try:
        seen = _decode(data[4:])
    except (msgspec.DecodeError, RecursionError):
        return Seen()
    return seen if seen.version == VERSION else Seen()


def dump(seen: Seen) -> bytes:
    """The bytes to keep until the next scan."""
    data = _encode(seen)
    return crc32(data).to_bytes(4, "little") + data


def join(names: list[str]) -> bytes:
    """Names as one piece; no name has a zero byte in it."""
    return os.fsencode("\0".join(names))


def split(names: bytes) -> list[str]:
    """The names that `join` made one piece of."""
    return os.fsdecode(names).split("\0") if names else []


def flat(numbers: list[int]) -> bytes:
    """Signatures as one piece."""
    try:
        return array("q", numbers).tobytes()
    except OverflowError:  # an inode may be any 64 bits
        return array("Q", [number & 0xFFFFFFFFFFFFFFFF for number in numbers]).tobytes()


def digest_bytes(digest: str) -> bytes:
    """A digest without its algorithm, as bytes."""
    return bytes.fromhex(digest[7:])


def digest_text(data: bytes) -> str:
    """The digest with these bytes."""
    return "sha256:" + data.hex()
