"""Sessions that came from the target as forks: an unchanged copy is not sent back."""

from __future__ import annotations

from collections.abc import Collection

from turnlog.errors import Corrupt, NotFound, Unsupported
from turnlog.log.part import Fork
from turnlog.store import Listed, Store
from turnlog.transfer.agreement import are_same
from turnlog.transfer.outgoing import Outgoing, OutgoingLine, origin_id, outgoing_of


def original_at_target(there: Store, sessions: Collection[Listed], here: Store, outgoing: Outgoing) -> Outgoing | None:
    """The session at the target that this one is an unchanged copy of, as it would be sent; else None."""
    try:
        original = _original_of(there, sessions, here, outgoing)
        return original if original is not None and _begins_like(original, outgoing) else None
    except (NotFound, Corrupt, Unsupported):
        return None  # an unreadable session is no reason to skip this one


def _original_of(there: Store, sessions: Collection[Listed], here: Store, outgoing: Outgoing) -> Outgoing | None:
    """What this home would get for the session at the target that this one was made from."""
    fork = outgoing.start.fork
    # A fork of a session that continued there; or an earlier one that needed another id here.
    original = _called(there, outgoing, fork.session, fork.base, fork.seq) if fork is not None else None
    original = original or _called(there, outgoing, origin_id(outgoing.id), None, 0)
    if original is not None or fork is None:
        return original
    parent = here.open(fork.session, read_only=True, first=fork.base)
    above = _original_of(there, sessions, here, outgoing_of(here, parent))
    return None if above is None else _fork_of(there, sessions, outgoing, fork, above)


def _called(there: Store, outgoing: Outgoing, name: str, first: str | None, cut: int) -> Outgoing | None:
    try:
        log = there.open(name, read_only=True, first=first) if name else None
    except NotFound:
        return None
    return None if log is None else outgoing_of(there, log).as_called(outgoing.id, cut, second_of(outgoing))


def _fork_of(
    there: Store, sessions: Collection[Listed], outgoing: Outgoing, fork: Fork, above: Outgoing
) -> Outgoing | None:
    """The original, if the session is a fork of a session that became another one."""
    for listed in sessions:
        if listed.start is not None and listed.start.fork is not None:
            original = outgoing_of(there, there.open(listed.id, read_only=True, first=listed.first)).moved(
                fork.session, fork.base, above.cuts
            )
            if original.id == outgoing.id:
                return original
    return None


def _begins_like(whole: Outgoing, part: Outgoing) -> bool:
    lines = (item for item in whole.lines() if isinstance(item, OutgoingLine))
    for item in part.lines():
        if isinstance(item, OutgoingLine) and ((other := next(lines, None)) is None or not are_same(item, other)):
            return False
    return True


def second_of(outgoing: Outgoing) -> str:
    """The id of the entry after the first line, where a fork begins with its own content."""
    lines = (item.entry.id for item in outgoing.lines() if isinstance(item, OutgoingLine))
    next(lines, None)
    return next(lines, "")
