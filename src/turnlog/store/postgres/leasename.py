"""The names of the lease rows of watchers: `watch <session number> <watcher>`, built and parsed here.

A watcher that also listens to live text has a `~` before its name.
"""

from __future__ import annotations

import uuid
from typing import LiteralString

WATCHES: LiteralString = "name > 'watch ' and name < 'watch!'"
"""An SQL condition: true for the names of watchers of any session."""
LISTENS: LiteralString = f"{WATCHES} and strpos(name, ' ~') > 0"
"""An SQL condition: true for the names of listeners."""
NUMBER_AND_LISTENER: LiteralString = "split_part(name, ' ', 2)::bigint, split_part(name, ' ', 3)"
"""SQL expressions for the session's number and the listener in such a name."""


def watches_of(num: int) -> str:
    """Return the prefix of the names of a session's watchers."""
    return f"watch {num}"


def watch_name(num: int, watcher: str) -> str:
    """Return the name for a watcher of a session."""
    return f"{watches_of(num)} {watcher}"


def new_listener() -> str:
    """Return a unique name for a listener."""
    return "~" + uuid.uuid4().hex
