"""How a home in a folder is laid out: for the store, and for whoever looks at one without opening it."""

from __future__ import annotations

SESSIONS, TRASH, TENANTS = "sessions", "trash", "tenants"
HOME_FILE = "home.json"
MARKS = "turnlog-marks"
"""The session with what somebody said of other agents' sessions, and its first entry: see `thread/marking.py`."""
LAYOUT = {"layout": 1, "packs": 2, "ids": 1}
"""What a version does not know, it leaves alone: a home of before says more once somebody writes there."""
ERASED_LAYOUT = {**LAYOUT, "erasures": 1}
"""The same where something was erased: from then on, and not before."""


def layout_line(layout: dict[str, int]) -> bytes:
    """Versions as they stand in the file."""
    return ("{" + ",".join(f'"{part}":{version}' for part, version in layout.items()) + "}\n").encode()


LAYOUT_LINES = (layout_line(LAYOUT), layout_line(ERASED_LAYOUT))
