"""Bytes as text in base64."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any


def from_base64(text: Any) -> bytes | None:
    """The bytes of a text in base64; None if it is no base64."""
    try:
        return b64decode(text, validate=True) if isinstance(text, str) else None
    except ValueError:
        return None


def from_canonical_base64(text: str) -> bytes | None:
    """The bytes of a text in base64; None if encoding them again gives another text."""
    data = from_base64(text)
    return data if data is not None and b64encode(data).decode() == text else None
