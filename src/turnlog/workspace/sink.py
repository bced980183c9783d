"""Sinks: where a scan puts the content of files and its trees."""

from __future__ import annotations

import os
from typing import Protocol

from turnlog.log.digest import sha256
from turnlog.workspace.tree import MAGIC

_PIECE = 1 << 20
"""The most bytes that are read at once."""


class Sink(Protocol):
    """Where the content of files goes."""

    def add(self, data: bytes, /) -> str:
        """Store these bytes; returns their digest."""
        ...

    def add_file(self, fd: int, size: int) -> str:
        """Store the next `size` bytes of an open file, or fewer if it ends; returns their digest."""
        ...


class DigestOnlySink:
    """A sink that stores only trees; of files it records the digests."""

    def __init__(self) -> None:
        self.trees: dict[str, bytes] = {}
        self.contents: set[str] = set()
        """The digests of files, whose content is only in the files."""

    def has(self, digest: str) -> bool:
        """Whether a digest can be relied on: always, because nothing is stored."""
        return True

    def add(self, data: bytes) -> str:
        """Store these bytes if they may be a tree; returns their digest."""
        digest = "sha256:" + sha256(data).hexdigest()
        if data.startswith(MAGIC):
            self.trees[digest] = data
        self.contents.add(digest)
        return digest

    def add_file(self, fd: int, size: int) -> str:
        """The digest of an open file."""
        digest = hash_open(fd, size)
        self.contents.add(digest)
        return digest


def hash_open(fd: int, size: int) -> str:
    """The digest of the next `size` bytes of an open file, or fewer if it ends."""
    piece = os.read(fd, min(_PIECE, size))
    hashed = sha256(piece)
    while piece and (size := size - len(piece)) > 0:
        piece = os.read(fd, min(_PIECE, size))
        hashed.update(piece)
    return "sha256:" + hashed.hexdigest()
