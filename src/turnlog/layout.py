"""How a home in a folder is laid out: for the store, and for code that looks at one without opening it."""

from __future__ import annotations

SESSIONS, TRASH, BASES, BLOBS = "sessions", "trash", "bases", "blobs"
TENANTS, DERIVED, LISTENING = "tenants", "derived", "listening"
ERASED, ERASING = "erased", "erasing"
HOME_FILE = "home.json"
LAYOUT = {"layout": 1, "packs": 2, "ids": 1}
"""Versions by part. A home with a higher number is refused; the next write rewrites that of an older home to this."""
ERASED_LAYOUT = {**LAYOUT, "erasures": 1}
"""The same, with the part that is only written once something has been erased."""


def layout_line(layout: dict[str, int]) -> bytes:
    """Versions as they stand in the file."""
    return ("{" + ",".join(f'"{part}":{version}' for part, version in layout.items()) + "}\n").encode()


LAYOUT_LINES = (layout_line(LAYOUT), layout_line(ERASED_LAYOUT))
