"""What the database says, in our words: which error, and whether to try again."""

from __future__ import annotations

import psycopg
from psycopg import errors

from turnlog.errors import OutOfSpace, TurnlogError, Unavailable, Unsupported


class Slow(psycopg.OperationalError):
    """No answer within the time we give the server."""


_LATER = "the database at {} did not answer; a retry is safe"
# Sqlstates, words that stand for them where there is no connection yet and so no state, what a person can do, and
# whether to wait for it first.
_REASONS: tuple[tuple[tuple[str, ...], tuple[str, ...], str, bool], ...] = (
    (
        ("53300",),
        ("too many connections", "too many clients", "remaining connection slots"),
        "the database at {} is out of connections: raise max_connections, or put a pooler before it",
        True,
    ),
    (
        ("28P01", "28000"),
        ("authentication failed", "no password supplied", "no pg_hba.conf entry", "role "),
        "check user and password for {}, and pg_hba.conf there",
        False,
    ),
    (("3D000",), ("does not exist",), "make it with createdb, or correct the name in {}", False),
    (
        ("25006",),
        ("read-only",),
        "{} is a standby, or just became one: name all hosts, and target_session_attrs=read-write",
        True,
    ),
    (
        ("57P",),
        ("starting up", "shutting down", "recovery mode"),
        "the database at {} is starting or stopping; a retry is safe",
        True,
    ),
    (
        ("57014", "55P03"),
        (),
        "the database at {} is too slow or waits for a lock; a retry is safe",
        False,
    ),
    (("08", "40"), (), _LATER, True),
    ((), ("translate host name", "resolve host"), "no such host: {}", False),
)


def _reason(error: psycopg.Error) -> tuple[str, bool]:
    """What a person can do about it, and whether the same may work in a moment, on a new connection."""
    if isinstance(error, Slow):
        return "the database at {} is too slow; a retry is safe", False
    state, text = error.sqlstate or "", str(error)
    for states, words, hint, passes in _REASONS:
        if state.startswith(states) if state and states else not state and any(word in text for word in words):
            return hint, passes
    return _LATER, not state and isinstance(error, psycopg.OperationalError)


def may_pass(error: psycopg.Error) -> bool:
    """Whether the same may work in a moment, on a new connection."""
    return _reason(error)[1]


def as_error(error: psycopg.Error, doing: str, place: str) -> TurnlogError:
    """The error to raise for what went wrong while `doing`."""
    state = error.sqlstate or ""
    text = " ".join(str(error.diag.message_primary or error).split())
    message = f"{doing}: {text}"
    if isinstance(error, errors.DiskFull):
        return OutOfSpace(message, hint=f"the disk of the database at {place} is full; nothing was changed")
    if state == "42501":
        return Unsupported(message, hint="this role lacks a privilege that it needs; see docs/guide/postgres.md")
    if state in ("3F000", "42P01", "42883", "42703"):
        return Unsupported(message, hint="the tables are not as turnlog made them; nothing was changed")
    return Unavailable(message, hint=_reason(error)[0].format(place))


def too_old(version: int, place: str) -> Unsupported:
    """The server is older than what we use."""
    return Unsupported(
        f"the database at {place} is PostgreSQL {version // 10000}; turnlog needs 13 or newer",
        hint="upgrade the server",
    )
