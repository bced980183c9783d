"""Digests without waiting for them: `hashlib` loads OpenSSL, which takes longer than all that a small command hashes.

Python's own SHA-256 gives the same at a fifth of the speed, so whoever hashes much gets that of OpenSSL.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Hash(Protocol):
        """What is being hashed."""

        def update(self, data: bytes, /) -> None: ...  # noqa: D102
        def digest(self) -> bytes: ...  # noqa: D102
        def hexdigest(self) -> str: ...  # noqa: D102


LITTLE = 1 << 19
"""About so many bytes are hashed while OpenSSL is loaded."""
_OWN = "_sha2" if sys.version_info >= (3, 12) else "_sha256"


@cache
def _of(module: str, name: str) -> Any:
    """Python's own, or else that of `hashlib`: not every Python has its own."""
    try:
        return getattr(import_module(module), name)
    except ImportError:
        return getattr(import_module("hashlib"), name)


_make = _of(_OWN, "sha256")
_left = LITTLE


def sha256(data: bytes | None = None) -> Hash:
    """As that of `hashlib`. Who begins with nothing has much to come."""
    global _make, _left
    _left -= LITTLE + 1 if data is None else len(data)
    if _left < 0:
        _make, _left = _of("hashlib", "sha256"), sys.maxsize
    return _make(data or b"")


def blake2b(data: bytes = b"", *, digest_size: int) -> Hash:
    """As that of `hashlib`, which is Python's own anyway."""
    return _of("_blake2", "blake2b")(data, digest_size=digest_size)
