"""What the last scan saw, so that an unchanged file is not read again. Derived: losing it costs time, nothing else."""

from __future__ import annotations

import msgspec
from msgspec import Struct

Signature = tuple[int, int, int, int, int]
"""Size, mtime, ctime, inode and mode: whatever changes a file changes one of them."""


class SeenFile(Struct, array_like=True, gc=False):
    """A file as the last scan saw it; an empty digest where it was too young to trust."""

    signature: Signature
    digest: str


class SeenFolder(Struct, array_like=True):
    """A folder as the last scan saw it."""

    rules: str
    """The digest of the rules that held in it."""
    files: dict[bytes, SeenFile]
    ignored: list[bytes]


class Seen(Struct, array_like=True):
    """A whole tree as the last scan saw it."""

    version: int = 1
    folders: dict[bytes, SeenFolder] = {}


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Seen).decode


def load(data: bytes) -> Seen:
    """What was seen, or nothing if these bytes do not say."""
    try:
        seen = _decode(data)
    except (msgspec.DecodeError, RecursionError):
        return Seen()
    return seen if seen.version == 1 else Seen()


def dump(seen: Seen) -> bytes:
    """The bytes to keep until the next scan."""
    return _encode(seen)
