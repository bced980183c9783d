"""Ids of entries and sessions. This is the only randomness in this room: a draft has its id from the beginning.

An entry id is a word that belongs to this process, a dash and a counter. So a store can tell quickly whether an id may
already be in a log (another process's word) or cannot be (our own, and not appended yet).
"""

from __future__ import annotations

import itertools
import os

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u


def word(length: int) -> str:
    """Return a random word of base-32 characters, 5 bits each."""
    return letters(os.urandom(length))


def letters(data: bytes) -> str:
    """Convert five bits of every byte to a base-32 character."""
    return "".join(_ALPHABET[byte & 31] for byte in data)


class _Process:
    """The word of this process. A forked child takes a new one, or both would make the same ids."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.word = word(12)
        self.prefix = self.word + "-"
        self.counter = itertools.count(1)


MARKS = "turnlog-marks"
"""The id of the session with the marks of other agents' sessions, and of its first entry."""
process = _Process()
"""The word of this process, for code that appends all the time; other code uses the functions below."""
os.register_at_fork(after_in_child=process.renew)


def new_id() -> str:
    """Return a new entry id."""
    return f"{process.prefix}{next(process.counter):x}"


def is_ours(entry_id: str) -> bool:
    """Whether this process made that id."""
    return entry_id.startswith(process.prefix)


def process_word() -> str:
    """Return the word that every entry id of this process begins with."""
    return process.word


def word_of(entry_id: str) -> str:
    """Return the process word in an entry id; "" for an id that a caller chose."""
    head, dash, _ = entry_id.partition("-")
    return head if dash and len(head) == len(process.word) else ""


def word_for(data: bytes) -> str:
    """Return the word for a process that makes no ids itself: always the same for the same identifying `data`."""
    from turnlog.log.digest import sha256

    return letters(sha256(data).digest()[: len(process.word)])


def new_session_id(stamp: str) -> str:
    """Return a new session id, which sorts by time: `20261115-070012-k3f9q2m7`."""
    return f"{stamp}-{word(8)}"


def imported_id(agent: str, native: str) -> str:
    """Return the id that a session of another agent gets here."""
    if 0 < len(native) <= 200 and native.isprintable():
        return f"{agent}-{native}"
    from turnlog.log.digest import sha256

    return f"{agent}-{sha256(native.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def handle_of(session_id: str) -> str:
    """Return the short name of a session: the last part of a generated id; any other id unchanged."""
    parts = session_id.split("-")
    if [len(part) for part in parts] == [8, 6, 8] and session_id.isascii():
        return parts[2]
    return session_id
