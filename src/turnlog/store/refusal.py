"""The errors that every store raises in the same words: an id that is missing, taken or ambiguous."""

from __future__ import annotations

from turnlog.errors import AlreadyExists, Ambiguous, Conflict, NotFound


def session_missing(session_id: str, *, for_fork: bool = False, is_deleted: bool = False) -> NotFound:
    """No session has that id; or none that a fork can build on."""
    if for_fork:
        gone = f"session {session_id!r}, which a fork builds on, is gone"
        return NotFound(gone, hint="look with `turnlog doctor`")
    hint = "it was deleted; home.restore brings it back" if is_deleted else "see `turnlog ls`"
    return NotFound(f"no session {session_id!r}", hint=hint)


def tenant_missing(name: str) -> NotFound:
    """There is no tenant of that name, or no longer."""
    return NotFound(f"no tenant {name!r:.80}", hint="home.tenants() has those there are; home.tenant() makes one")


def id_taken(session_id: str) -> AlreadyExists:
    """A session has that id."""
    return AlreadyExists(
        f"there is a session {session_id!r} already",
        hint="resume it, or choose another id; `turnlog restore --as` restores a deleted one under another",
    )


def id_in_trash(session_id: str) -> AlreadyExists:
    """A deleted session has that id."""
    return AlreadyExists(
        f"a deleted session is called {session_id!r}, too",
        hint="restore that one under another id with `turnlog restore --as`, or purge it",
    )


def id_ambiguous(session_id: str) -> Ambiguous:
    """A session and a deleted one have that id."""
    return Ambiguous(
        f"there is a session {session_id!r}, and a deleted one",
        hint="deleted=True, or `turnlog rm --purge --deleted`, is for the one in the trash",
    )


def refuse_longer(session_id: str, last: int, after: int | None) -> None:
    """Raise `Conflict` if the session grew past `after`."""
    if after is not None and last != after:
        raise Conflict(
            f"session {session_id!r} ends with entry {last}, not {after}",
            hint="look at what came after, and decide again",
        )
