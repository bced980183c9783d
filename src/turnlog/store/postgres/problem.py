"""What the database says, in our words: which error, and whether to try again."""

from __future__ import annotations

import psycopg
from psycopg import errors

from turnlog.errors import OutOfSpace, TurnlogError, Unavailable, Unsupported


class Slow(psycopg.OperationalError):
    """No answer within the time we give the server."""


def may_pass(error: psycopg.Error) -> bool:
    """Whether the same may work in a moment, on a new connection."""
    state = error.sqlstate
    if state is None:
        return isinstance(error, psycopg.OperationalError) and not isinstance(error, Slow) and _reason(error) is None
    # Connections that broke, servers that start or stop or became a standby, deadlocks, too many connections.
    return state.startswith(("08", "57P", "40")) or state in ("25006", "53300")


def as_error(error: psycopg.Error, doing: str, place: str) -> TurnlogError:
    """The error to raise for what went wrong while `doing`."""
    state = error.sqlstate or ""
    text = " ".join(str(error.diag.message_primary or error).split())
    message = f"{doing}: {text}"
    if isinstance(error, errors.DiskFull):
        return OutOfSpace(message, hint=f"the disk of the database at {place} is full; nothing was changed")
    if state == "42501":
        return Unsupported(message, hint="this role lacks a privilege that it needs; see docs/postgres.md")
    if state in ("3F000", "42P01", "42883", "42703"):
        return Unsupported(message, hint="the tables are not as turnlog made them; nothing was changed")
    reason = _reason(error)
    return Unavailable(message, hint=(reason or "the database at {} did not answer; a retry is safe").format(place))


def _reason(error: psycopg.Error) -> str | None:
    """What a person can do about it, where waiting a moment will not help, or not alone."""
    state, text = error.sqlstate or "", str(error)
    if isinstance(error, Slow) or state in ("57014", "55P03"):
        return "the database at {} is too slow or waits for a lock; a retry is safe"
    if state == "53300" or "too many clients" in text or "remaining connection slots" in text:
        return "the database at {} is out of connections: raise max_connections, or put a pooler before it"
    if state in ("28P01", "28000") or "authentication failed" in text or "no password supplied" in text:
        return "check user and password for {}, and pg_hba.conf there"
    if state == "3D000" or ("database" in text and "does not exist" in text):
        return "make it with createdb, or correct the name in {}"
    if state == "25006":
        return "{} is a standby, or just became one: name all hosts, and target_session_attrs=read-write"
    if state.startswith("57P"):
        return "the database at {} is starting or stopping; a retry is safe"
    if "could not translate host name" in text or "failed to resolve host" in text:
        return "no such host: {}"
    if "invalid connection option" in text or "invalid URI" in text:
        return "postgresql://user@host:5432/name is how a location looks"
    return None


def too_old(version: int, place: str) -> Unsupported:
    """The server is older than what we use."""
    return Unsupported(
        f"the database at {place} is PostgreSQL {version // 10000}; turnlog needs 13 or newer",
        hint="upgrade the server",
    )
