"""Digests that load fast: `hashlib` loads OpenSSL, which takes longer than all the hashing of a small command.

Python's own SHA-256 has a fifth of the speed, so a process that hashes a lot switches to OpenSSL.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Hash(Protocol):
        """A digest that is being computed."""

        def update(self, data: bytes, /) -> None: ...  # noqa: D102
        def digest(self) -> bytes: ...  # noqa: D102
        def hexdigest(self) -> str: ...  # noqa: D102


LITTLE = 1 << 19
"""About the number of bytes that Python's own hash could process while OpenSSL is loaded."""
_OWN = "_sha2" if sys.version_info >= (3, 12) else "_sha256"


@cache
def _of(module: str, name: str) -> Any:
    """Return Python's own implementation, or that of `hashlib` if this Python has none."""
    try:
        return getattr(import_module(module), name)
    except ImportError:
        return getattr(import_module("hashlib"), name)


_make = _of(_OWN, "sha256")
_left = LITTLE


def sha256(data: bytes | None = None) -> Hash:
    """As `hashlib.sha256`. Without `data`, a lot of data is expected, so OpenSSL is used from then on."""
    global _make, _left
    _left -= LITTLE + 1 if data is None else len(data)
    if _left < 0:
        _make, _left = _of("hashlib", "sha256"), sys.maxsize
    return _make(data or b"")


def blake2b(data: bytes = b"", *, digest_size: int) -> Hash:
    """As `hashlib.blake2b`, which is Python's own implementation anyway."""
    return _of("_blake2", "blake2b")(data, digest_size=digest_size)
