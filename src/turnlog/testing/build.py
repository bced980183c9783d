"""Builders: a clock that stands still, and drafts as a session would make them."""

from __future__ import annotations

from turnlog.log.block import Text
from turnlog.log.codec import Damage
from turnlog.log.draft import Draft, prepare
from turnlog.log.entry import AnyEntry, Entry, Fork, Message, Role, Start
from turnlog.store import Log

NOON = 1_795_000_000_000
"""A moment in milliseconds since 1970: 2026-11-18."""


class ManualClock:
    """A clock that moves only when it is told to."""

    def __init__(self, now: int = NOON) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def tick(self, ms: int = 1000) -> None:
        """Let that much time pass; negative turns the clock back."""
        self.now += ms


def draft(entry: Entry) -> Draft:
    """An entry ready for a store. Its payloads have to fit into the line."""
    entry_to_write, blobs = prepare(entry)
    assert not blobs, "put its blobs first"
    return entry_to_write


def said(text: str, *, role: Role = "user", id: str | None = None) -> Draft:
    """A message: the usual node."""
    message = Message(role=role, blocks=[Text(text=text)])
    return draft(message if id is None else Message(role=role, blocks=[Text(text=text)], id=id))


def start(session_id: str, *, first: str | None = None, fork: Fork | None = None, title: str | None = None) -> Draft:
    """The first entry of a log, under its own id or, as before there were such, under the session's."""
    if first is None:
        return draft(Start(id=session_id, fork=fork, title=title))
    return draft(Start(id=first, session=session_id, fork=fork, title=title))


def read(log: Log, *, after: int = 0, before: int | None = None, reverse: bool = False) -> list[AnyEntry]:
    """The entries of a log, which must not be damaged."""
    items = list(log.read(after=after, before=before, reverse=reverse))
    damage = [item for item in items if isinstance(item, Damage)]
    assert not damage, f"damage in a log that nobody harmed: {damage}"
    return [item for item in items if isinstance(item, Entry)]


def entries_of(log: Log) -> list[AnyEntry]:
    """Every readable entry of a log, whatever else is in it."""
    return [item for item in log.read() if isinstance(item, Entry)]


def seqs(entries: list[AnyEntry]) -> list[int]:
    """Their numbers."""
    return [entry.seq for entry in entries]
