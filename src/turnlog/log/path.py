"""Paths as logs have them: text, whatever bytes they are made of. Pure."""

from __future__ import annotations


def path_text(path: bytes) -> str:
    """A path as text for a log or a person: as it is, or `bytes:` and %-escapes where it is not Unicode."""
    try:
        text = path.decode()
    except UnicodeDecodeError:
        text = "bytes:"
    if not text.startswith("bytes:"):
        return text
    from urllib.parse import quote_from_bytes  # hardly ever, and it takes a while to load

    return "bytes:" + quote_from_bytes(path)


def path_bytes(text: str) -> bytes:
    """The path that `path_text` made this of."""
    if not text.startswith("bytes:"):
        return text.encode()
    from urllib.parse import unquote_to_bytes

    return unquote_to_bytes(text[6:])


def moved_along(path: str, before: str, after: str) -> str:
    """A path in the folder `before`, when that folder is `after` now; any other path as it is."""
    try:
        lead, here = path_bytes(before).rstrip(b"/") + b"/", path_bytes(path)
        return path_text(path_bytes(after).rstrip(b"/") + b"/" + here[len(lead) :]) if here.startswith(lead) else path
    except ValueError:
        return path  # no path at all: a log may say anything
