"""Where a session comes from: the one that it continues, or the one that started it."""

# Without `from __future__ import annotations`, as in `entry`: msgspec reads types sooner than texts of them.
from msgspec import Struct

from turnlog.log.field import Number


class Fork(Struct, frozen=True, omit_defaults=True):
    """Which entry of which session a fork continues. `offset` is only a hint."""

    session: str
    seq: Number
    id: str
    name: str | None = None
    offset: Number | None = None
    first: str | None = None
    """The id of that session's first entry, if that is not the session's own: another one may be called so by now."""

    @property
    def base(self) -> str:
        """What tells the session that it continues from every other one."""
        return self.first or self.session


class Spawned(Struct, frozen=True, omit_defaults=True):
    """Which session started this one as a subagent, and with which tool call."""

    session: str
    call: str | None = None
    role: str | None = None
