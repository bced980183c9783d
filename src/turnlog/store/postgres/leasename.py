"""The names of the lease rows of those who watch a session: `watch <number> <watcher>`, built and taken apart here.

A watcher that also listens to live text has a `~` before its name.
"""

from __future__ import annotations

import uuid
from typing import LiteralString

WATCHES: LiteralString = "name > 'watch ' and name < 'watch!'"
"""True of the names of watchers, of whichever session."""
LISTENS: LiteralString = f"{WATCHES} and strpos(name, ' ~') > 0"
"""True of the names of listeners."""
NUMBER_AND_LISTENER: LiteralString = "split_part(name, ' ', 2)::bigint, split_part(name, ' ', 3)"
"""The session's number and the listener, of such a name."""


def watches_of(num: int) -> str:
    """The beginning of the names of all that watch that session."""
    return f"watch {num}"


def watch_name(num: int, watcher: str) -> str:
    """The name of one that watches that session."""
    return f"{watches_of(num)} {watcher}"


def new_listener() -> str:
    """A name that no other listener has."""
    return "~" + uuid.uuid4().hex
