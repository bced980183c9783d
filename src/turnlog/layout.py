"""How a home in a folder is laid out: for the store, and for whoever looks at one without opening it."""

from __future__ import annotations

SESSIONS, TRASH = "sessions", "trash"
HOME_FILE = "home.json"
LAYOUT = {"layout": 1, "packs": 2, "ids": 1}
"""What a version does not know, it leaves alone: a home of before says more once somebody writes there."""
LAYOUT_LINE = ("{" + ",".join(f'"{part}":{version}' for part, version in LAYOUT.items()) + "}\n").encode()
"""The same as it stands in the file."""
