"""Endings: the last thing in a session, from which its state follows.

They are `answer`, `asked` (a prompt), `call`, `result`, `turn` (begun and not ended), `ask`, `unread`, and "" for none.
"""

from __future__ import annotations

OPEN = ("turn", "call", "result", "asked")
"""The endings of a session that stopped inside a turn."""
WAITING = "ask"
"""The ending of a session that waits for a person to allow a tool, whether or not a process runs."""
UNREAD = "unread"
"""The ending of a session that had only a glance: unknown."""
