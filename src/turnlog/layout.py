"""How a home in a folder is laid out: for the store, and for code that looks at one without opening it."""

from __future__ import annotations

# The logs and blobs, which the modules of `store/files` write.
SESSIONS = "sessions"
"""The logs, one file each."""
TRASH = "trash"
"""The logs of deleted sessions, until they are purged."""
BASES = "bases"
"""The beginnings of purged sessions that forks still need: `store/files/trash.py`."""
BLOBS = "blobs"
"""The packs of blobs: `store/files/packs.py`."""
BLOBS_LOCK = ".blobs.lock"
"""Locked by a collection, and by those who store blobs meanwhile: `store/files/blobs.py`."""
TENANTS = "tenants"
"""A home for each tenant: `store/files/tenants.py`."""
TENANTS_LOCK = ".tenants.lock"
"""Locked while a tenant is dropped: `store/files/tenants.py`."""
DERIVED = "derived"
"""What can be made again: caches, and locks of processes."""
LISTENING = "listening"
"""Pipes of followers who want text while it arrives: `store/files/broadcast.py`."""
ERASED = "erased"
"""Which entries were erased, by whom and why: `store/files/erasing.py`."""
ERASING = "erasing"
"""Plans of erasures that are not finished: `store/files/erasing.py`."""

# Files about this machine, which are never copied with a home.
CREATED_HERE = "made"
"""The sessions that were created here, whose commands may be run: `thread/home/createdhere.py`."""
HANDED_OVER = "handed"
"""The sessions that were written for other agents here: `thread/home/handedover.py`."""
SPACE_LIMIT = "limit"
"""How much a home that hooks fill may take: `machine/space.py`."""
TRASH_LIMIT = "trash-for"
"""How long deleted sessions stay: `machine/retention.py`."""

HOME_FILE = "home.json"
"""The versions of the layout, by part."""
LAYOUT = {"layout": 1, "packs": 2, "ids": 1}
"""Versions by part. A home with a higher number is refused; the next write rewrites that of an older home to this."""
ERASED_LAYOUT = {**LAYOUT, "erasures": 1}
"""The layout of a home in which something was erased."""


def layout_line(layout: dict[str, int]) -> bytes:
    """Versions as they stand in the file. Readers compare its bytes, so the spelling is fixed here."""
    return ("{" + ",".join(f'"{part}":{version}' for part, version in layout.items()) + "}\n").encode()


LAYOUT_LINES = (layout_line(LAYOUT), layout_line(ERASED_LAYOUT))
