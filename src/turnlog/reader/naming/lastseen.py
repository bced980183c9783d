"""Where another agent's session was when the catalog saw it last: asked of its file, without the catalog.

An exact name can be resolved from the index file alone, without refreshing the catalog: what is shown is read from
the session itself. The first eight digits of an id that is a UUID are exact enough, as `ls` prints them: that
another session with the same ones was begun since is next to impossible.
"""

from __future__ import annotations

import os
import re

from turnlog.errors import Unsupported
from turnlog.log.startup import NamedTuple
from turnlog.machine.environment import existing_cache
from turnlog.machine.location import key_of

_WAIT_S = 0.2
_FOUND = """
SELECT native, agent, path, key, workspace, is_ours FROM sessions WHERE name = ?1 AND NOT is_deleted
UNION ALL SELECT '', '', '', '', '', 1 FROM sessions WHERE native = ?1 AND NOT is_deleted LIMIT 2
"""
_BEGINS = """
SELECT native, agent, path, key, workspace, is_ours FROM sessions
WHERE (native >= ?1 AND native < ?2 OR name >= ?1 AND name < ?2) AND NOT is_deleted LIMIT 2
"""
_DIGITS = r"[0-9a-f]{8}(-[0-9a-f-]{0,27})?"


class LastSeen(NamedTuple):
    """A session of another agent as the catalog saw it last."""

    native: str
    agent: str
    path: str
    workspace: str | None


def last_seen(location: str | None, name: str) -> LastSeen | None:
    """The one session that is meant, if it has a file of its own that is still there."""
    is_beginning = re.fullmatch(_DIGITS, name) is not None
    if location is None or not (is_beginning or ":" in name):
        return None
    query, values = (_BEGINS, (name, name + "g")) if is_beginning else (_FOUND, (name,))
    import sqlite3  # sessions of ours need no catalog

    try:
        path = f"{existing_cache()}/{key_of(location)}.sqlite"
        if not os.access(path, os.R_OK):
            return None
        database = sqlite3.connect(path, timeout=_WAIT_S)
        try:
            database.execute("PRAGMA query_only = 1")
            rows = database.execute(query, values).fetchall()
        finally:
            database.close()
    except (sqlite3.Error, Unsupported, UnicodeEncodeError):
        return None  # the catalog knows what to do about that
    match rows:
        case [(str(native), str(agent), str(there), "", str() | None as workspace, 0)] if os.access(there, os.R_OK):
            return LastSeen(native, agent, there, workspace)
        case _:
            return None
