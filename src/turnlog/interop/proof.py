"""Proof that a file only grew: a digest of its beginning and of the end of what was read."""

from __future__ import annotations

from typing import BinaryIO

from turnlog.interop.folder import at_once

_PIECE = 4096


def proof(path: str, size: int) -> bytes:
    """A digest of the first 4 KiB of a file and of the last 4 KiB of its first `size` bytes.

    It is unchanged as long as the file only grows.
    """
    with open(path, "rb", opener=at_once) as file:
        return proof_of(file, size)


def proof_of(file: BinaryIO, size: int) -> bytes:
    """The proof for an open file, whose position changes."""
    from turnlog.log.digest import blake2b

    hashed = blake2b(digest_size=8)
    for start in (0, max(0, size - _PIECE)):
        file.seek(start)
        hashed.update(file.read(min(size, _PIECE)))
    return hashed.digest()
