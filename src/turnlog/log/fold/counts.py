"""Counts of messages, calls and turns in a session, and in those that it continues."""

# Without `from __future__ import annotations`, as in `log/entry.py`.

from datetime import datetime

from msgspec import Struct, field

from turnlog.log.usage import Usage


class Counts(Struct, omit_defaults=True):
    """Counts for one session, abandoned branches included."""

    messages: dict[str, int] = {}
    tool_calls: int = 0
    turns: int = 0
    busy_ms: int = 0
    """The total duration of the messages."""

    def plus(self, other: "Counts") -> "Counts":
        """Return the sum of both."""
        roles = dict(self.messages)
        for role, count in other.messages.items():
            roles[role] = roles.get(role, 0) + count
        tools, turns, busy = self.tool_calls + other.tool_calls, self.turns + other.turns, self.busy_ms + other.busy_ms
        return Counts(roles, tools, turns, busy)


class Inherited(Struct, omit_defaults=True):
    """Usage and counts before a fork, in the sessions that it continues."""

    usage: Usage = Usage()
    counts: Counts = field(default_factory=Counts)
    peak: int = 0
    first_at: datetime | None = None
