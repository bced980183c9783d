"""Ids as keys of an index, which takes no more than a few thousand bytes and compares bytes, not characters."""

from __future__ import annotations

import hashlib

from turnlog.errors import Invalid
from turnlog.log.ids import handle_of

LONGEST = 63


def key_of(name: str) -> bytes:
    """The id itself, or a digest of a long one. No two ids have the same key: digests are longer than the rest."""
    data = id_bytes(name)
    return data if len(data) <= LONGEST else b"#" * 32 + hashlib.sha256(data).digest()


def alias_of(session_id: str) -> bytes | None:
    """How a session is looked for where its key does not show it: by its handle, or by how a long id begins."""
    data, handle = id_bytes(session_id), handle_of(session_id)
    if len(data) > LONGEST:
        return data[:LONGEST]
    return None if handle == session_id else id_bytes(handle)


def id_bytes(name: str) -> bytes:
    """An id as it is stored."""
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Invalid(f"an id is text, not {name!r:.80}")
    return name.encode("utf-8", "surrogatepass")


def id_text(data: bytes) -> str:
    """The id that `id_bytes` stored."""
    return data.decode("utf-8", "surrogatepass")
