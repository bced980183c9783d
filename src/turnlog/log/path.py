"""Paths as logs have them: text, whatever bytes they are made of. Pure."""

from __future__ import annotations

from urllib.parse import quote_from_bytes, unquote_to_bytes


def path_text(path: bytes) -> str:
    """A path as text for a log or a person: as it is, or `bytes:` and %-escapes where it is not Unicode."""
    try:
        text = path.decode()
    except UnicodeDecodeError:
        return "bytes:" + quote_from_bytes(path)
    return "bytes:" + quote_from_bytes(path) if text.startswith("bytes:") else text


def path_bytes(text: str) -> bytes:
    """The path that `path_text` made this of."""
    return unquote_to_bytes(text[6:]) if text.startswith("bytes:") else text.encode()


def moved_along(path: str, before: str, after: str) -> str:
    """A path in the folder `before`, when that folder is `after` now; any other path as it is."""
    try:
        lead, here = path_bytes(before).rstrip(b"/") + b"/", path_bytes(path)
        return path_text(path_bytes(after).rstrip(b"/") + b"/" + here[len(lead) :]) if here.startswith(lead) else path
    except ValueError:
        return path  # no path at all: a log may say anything
