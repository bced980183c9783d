"""Paths as text in logs, whatever bytes they consist of. Pure."""

from __future__ import annotations

from collections.abc import Collection


def path_text(path: bytes) -> str:
    """Convert a path to text for a log or a person: unchanged, or `bytes:` and %-escapes if it is not Unicode."""
    try:
        text = path.decode()
    except UnicodeDecodeError:
        text = "bytes:"
    if not text.startswith("bytes:"):
        return text
    from urllib.parse import quote_from_bytes  # rare, and slow to load

    return "bytes:" + quote_from_bytes(path)


def path_bytes(text: str) -> bytes:
    """Convert the text from `path_text` back to the path."""
    if not text.startswith("bytes:"):
        return text.encode()
    from urllib.parse import unquote_to_bytes

    return unquote_to_bytes(text[6:])


def moved_along(path: str, before: str, after: str) -> str:
    """Return the new path of something in the folder `before`, which is now `after`; other paths stay the same."""
    try:
        lead, here = path_bytes(before).rstrip(b"/") + b"/", path_bytes(path)
        return path_text(path_bytes(after).rstrip(b"/") + b"/" + here[len(lead) :]) if here.startswith(lead) else path
    except ValueError:
        return path  # not a path: a log may hold anything


def is_at_or_below(path: bytes, tops: Collection[bytes]) -> bool:
    """Whether a path is one of these, or inside one of them."""
    while path:
        if path in tops:
            return True
        path = path.rpartition(b"/")[0]
    return False
