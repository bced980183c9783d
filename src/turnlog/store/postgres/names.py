"""Ids as keys of an index, which takes no more than a few thousand bytes and compares bytes, not characters."""

from __future__ import annotations

import hashlib

from turnlog.errors import Invalid
from turnlog.log.ids import handle_of

LONGEST = 63
_LONGEST_PART = 2000


def key_of(name: str) -> bytes:
    """Return the id, or the digest of a long id. Keys are unique: a digest is longer than any id that is a key."""
    data = id_bytes(name)
    return data if len(data) <= LONGEST else b"#" * 32 + hashlib.sha256(data).digest()


def alias_of(session_id: str) -> bytes | None:
    """Return a second key to search a session by: its handle, or the beginning of a long id; None if there is none."""
    data, handle = id_bytes(session_id), handle_of(session_id)
    if len(data) > LONGEST:
        return data[:LONGEST]
    return None if handle == session_id else id_bytes(handle)


def id_bytes(name: str) -> bytes:
    """Return an id as it is stored."""
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Invalid(f"an id is text, not {name!r:.80}")
    return name.encode("utf-8", "surrogatepass")


def id_text(data: bytes) -> str:
    """Return the id that `id_bytes` encoded."""
    return data.decode("utf-8", "surrogatepass")


def part_key(part: str) -> str:
    """Return the part of an erased entry as it is in an index, or a digest of one that is long or has a NUL."""
    data = id_bytes(part)
    return part if len(data) <= _LONGEST_PART and b"\0" not in data else "#" + hashlib.sha256(data).hexdigest()
