"""Ids of entries and sessions: the only randomness in this room, because a draft has its id when it is made.

An entry id is a word that belongs to this process, a dash and a counter. So a store can tell in no time
whether an id may already be in a log (somebody else's word) or cannot be (ours, and not appended yet).
"""

from __future__ import annotations

import itertools
import os

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u


def word(length: int) -> str:
    """A random word of base-32 characters, 5 bits each."""
    return letters(os.urandom(length))


def letters(data: bytes) -> str:
    """Five bits of every byte, as a base-32 character each."""
    return "".join(_ALPHABET[byte & 31] for byte in data)


class _Process:
    """The word of this process. A forked child takes a new one, or both would count from the same number."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.word = word(12)
        self.prefix = self.word + "-"
        self.counter = itertools.count(1)


MARKS = "turnlog-marks"
"""The id of the session with the marks of other agents' sessions, and of its first entry: see `thread/marking.py`."""
process = _Process()
"""For code that appends all the time; everything else uses the functions below."""
os.register_at_fork(after_in_child=process.renew)


def new_id() -> str:
    """A fresh entry id."""
    return f"{process.prefix}{next(process.counter):x}"


def is_ours(entry_id: str) -> bool:
    """Whether this process made that id."""
    return entry_id.startswith(process.prefix)


def process_word() -> str:
    """The word that starts every entry id made by this process."""
    return process.word


def word_of(entry_id: str) -> str:
    """The process word in an entry id, or nothing for an id that a caller chose."""
    head, dash, _ = entry_id.partition("-")
    return head if dash and len(head) == len(process.word) else ""


def word_for(data: bytes) -> str:
    """The word of a process that makes no ids itself: always the same for what tells it from others."""
    from turnlog.log.digest import sha256

    return letters(sha256(data).digest()[: len(process.word)])


def new_session_id(stamp: str) -> str:
    """A session id that sorts by time: `20261115-070012-k3f9q2m7`."""
    return f"{stamp}-{word(8)}"


def imported_id(agent: str, native: str) -> str:
    """The id that a session of another agent has here."""
    if 0 < len(native) <= 200 and native.isprintable():
        return f"{agent}-{native}"
    from turnlog.log.digest import sha256

    return f"{agent}-{sha256(native.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def handle_of(session_id: str) -> str:
    """The short name of a session: the last part of a generated id, any other id as it is."""
    parts = session_id.split("-")
    if [len(part) for part in parts] == [8, 6, 8] and session_id.isascii():
        return parts[2]
    return session_id
