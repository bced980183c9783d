"""Errors that are worded the same in every store: ids that are missing, taken or ambiguous, and other writers."""

from __future__ import annotations

from turnlog.errors import AlreadyExists, Ambiguous, Conflict, NotFound
from turnlog.log.entry import AnyEntry
from turnlog.log.part import Fork


def session_missing(session_id: str, *, for_fork: bool = False, is_deleted: bool = False) -> NotFound:
    """Return the error for an id that no session has, or none that a fork can build on."""
    if for_fork:
        gone = f"session {session_id!r}, which a fork builds on, is gone"
        return NotFound(gone, hint="look with `turnlog doctor`")
    hint = "it was deleted; home.restore brings it back" if is_deleted else "see `turnlog ls`"
    return NotFound(f"no session {session_id!r}", hint=hint)


def fork_entry_missing(parent: Fork) -> NotFound:
    """Return the error for a fork of an entry that a purge of its session has removed."""
    return NotFound(
        f"entry {parent.seq} of session {parent.session!r} was purged meanwhile", hint="fork an earlier entry"
    )


def session_replaced(session_id: str) -> NotFound:
    """Return the error for a session that was purged while it was open, and whose id another session has now."""
    return NotFound(f"session {session_id!r} was purged; another session has its id", hint="resume that one by its id")


def session_gone(session_id: str) -> NotFound:
    """Return the error for a session that was deleted or purged while it was open."""
    return NotFound(f"session {session_id} is gone from its place", hint="it was deleted or purged; see `turnlog ls`")


def tenant_missing(name: str) -> NotFound:
    """Return the error for a tenant that does not exist, or no longer does."""
    return NotFound(f"no tenant {name!r:.80}", hint="home.tenants() has those there are; home.tenant() makes one")


def id_taken(session_id: str) -> AlreadyExists:
    """Return the error for an id that a session has."""
    return AlreadyExists(
        f"there is a session {session_id!r} already",
        hint="resume it, or choose another id; `turnlog restore --as` restores a deleted one under another",
    )


def id_in_trash(session_id: str) -> AlreadyExists:
    """Return the error for an id that a deleted session has."""
    return AlreadyExists(
        f"a deleted session is called {session_id!r}, too",
        hint="restore that one under another id with `turnlog restore --as`, or purge it",
    )


def id_ambiguous(session_id: str) -> Ambiguous:
    """Return the error for an id that both a session and a deleted session have."""
    return Ambiguous(
        f"there is a session {session_id!r}, and a deleted one",
        hint="deleted=True, or `turnlog rm --purge --deleted`, is for the one in the trash",
    )


def entry_id_taken(session_id: str, entry_id: str) -> AlreadyExists:
    """Return the error for an entry id that is in the session's log already."""
    return AlreadyExists(f"the entry id {entry_id!r} is already in session {session_id}", hint="use another id")


def came_after(after: int, newer: AnyEntry | None) -> Conflict:
    """Return the error for an append to a log in which another writer's entry came after `after`."""
    what = f"entry {newer.seq} ({newer.type}, {newer.id})" if newer is not None else "an entry"
    return Conflict(
        f"{what} of another writer came after entry {after}",
        hint="call refresh() on the session and append again, or append with rebase=True",
    )


def ends_elsewhere(session_id: str, last: int, after: int) -> Conflict:
    """Return the error for a log that does not end with entry `after`."""
    return Conflict(
        f"session {session_id!r} ends with entry {last}, not {after}",
        hint="look at what came after, and decide again",
    )


def refuse_other_end(session_id: str, last: int, after: int | None) -> None:
    """Raise `Conflict` unless the session ends with entry `after`; None stands for any end."""
    if after is not None and last != after:
        raise ends_elsewhere(session_id, last, after)
