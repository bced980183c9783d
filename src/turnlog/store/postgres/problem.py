"""Mapping of database errors to Turnlog's errors, and whether to retry."""

from __future__ import annotations

from typing import NamedTuple

import psycopg

from turnlog.errors import OutOfSpace, TurnlogError, Unavailable, Unsupported


class Slow(psycopg.OperationalError):
    """The server did not answer within the time limit."""


class Reason(NamedTuple):
    """A kind of database error."""

    word: str
    """The name of this kind in `health`."""
    states: tuple[str, ...]
    words: tuple[str, ...]
    """Texts that identify it without an SQLSTATE, before there is a connection."""
    hint: str
    passes: bool
    """Whether the same may work in a moment, on a new connection."""

    def matches(self, state: str, text: str) -> bool:
        """Whether an error with that SQLSTATE, "" for none, and that text is of this kind."""
        if state:
            return bool(self.states) and state.startswith(self.states)
        return any(word in text for word in self.words)


_KINDS: dict[str, type[TurnlogError]] = {"full": OutOfSpace, "privilege": Unsupported, "tables": Unsupported}
_AWAY = Reason("away", ("08", "40"), (), "the database at {} did not answer; a retry is safe", True)
_SLOW = Reason(
    "slow", ("57014", "55P03"), (), "the database at {} is too slow or waits for a lock; a retry is safe", False
)
_REASONS = (
    Reason(
        "connections",
        ("53300",),
        ("too many connections", "too many clients", "remaining connection slots"),
        "the database at {} is out of connections: raise max_connections, or put a pooler before it",
        True,
    ),
    Reason(
        "login",
        ("28P01", "28000"),
        ("authentication failed", "no password supplied", "no pg_hba.conf entry", "role "),
        "check user and password for {}, and pg_hba.conf there",
        False,
    ),
    Reason("no_database", ("3D000",), ("does not exist",), "make it with createdb, or correct the name in {}", False),
    Reason(
        "standby",
        ("25006", "0A000"),  # the second is what it says of tables that are not written to its log
        ("read-only",),
        "{} is a standby, or just became one: name all hosts, and target_session_attrs=read-write",
        True,
    ),
    Reason(
        "starting",
        ("57P",),
        ("starting up", "shutting down", "recovery mode"),
        "the database at {} is starting or stopping; a retry is safe",
        True,
    ),
    _SLOW,
    _AWAY,
    Reason("no_host", (), ("translate host name", "resolve host"), "no such host: {}", False),
    Reason("full", ("53100",), (), "the disk of the database at {} is full; nothing was changed", False),
    Reason(
        "privilege",
        ("42501",),
        (),
        "this role lacks a privilege that it needs, or its tenant was dropped; see docs/guide/postgres.md",
        False,
    ),
    Reason(
        "tables",
        ("3F000", "42P01", "42883", "42703"),
        (),
        "a newer turnlog changed the tables, or somebody else; nothing was changed",
        False,
    ),
)


def reason(error: psycopg.Error) -> Reason:
    """Return the kind of a database error."""
    if isinstance(error, Slow):
        return _SLOW
    state, text = error.sqlstate or "", str(error)
    for candidate in _REASONS:
        if candidate.matches(state, text):
            return candidate
    return _AWAY._replace(passes=not state and isinstance(error, psycopg.OperationalError))


def may_pass(error: psycopg.Error) -> bool:
    """Whether the same may work in a moment, on a new connection."""
    return reason(error).passes


def as_error(error: psycopg.Error, doing: str, server: str) -> TurnlogError:
    """Return the error to raise for a database error; `doing` says what failed."""
    text = " ".join(str(error.diag.message_primary or error).split())
    cause = reason(error)
    kind = _KINDS.get(cause.word, Unavailable)
    return kind(f"{doing}: {text}", hint=cause.hint.format(server))


def word_of(error: TurnlogError) -> str:
    """Return the name in `health` of the kind of error that was raised as this one."""
    return reason(error.__cause__).word if isinstance(error.__cause__, psycopg.Error) else error.code


def too_old(version: int, server: str) -> Unsupported:
    """Return the error for a server that is too old."""
    return Unsupported(
        f"the database at {server} is PostgreSQL {version // 10000}; turnlog needs 13 or newer",
        hint="upgrade the server",
    )
