"""Builders: a clock that stands still, drafts as a session would make them, and the entries of a log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from turnlog.log.block import Text
from turnlog.log.codec import Damage
from turnlog.log.draft import Draft, prepare
from turnlog.log.entry import AnyEntry, Entry, Message, Note, Role, Set, Start
from turnlog.log.part import Fork
from turnlog.store import Log, Store

START_MS = 1_795_000_000_000
"""The time at which a `ManualClock` starts, in milliseconds since 1970: 2026-11-18."""
PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)
"""The beginning of an image."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ManualClock:
    """A clock that moves only when it is told to."""

    def __init__(self, now: int = START_MS) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def tick(self, ms: int = 1000) -> None:
        """Let that much time pass; negative turns the clock back."""
        self.now += ms


def moment(ms: int) -> datetime:
    """Return a time, given in milliseconds since 1970, as entries have it."""
    return _EPOCH + timedelta(milliseconds=ms)


def draft(entry: Entry) -> Draft:
    """Return an entry as a draft for a store. Its payloads have to fit into the line."""
    entry_to_write, blobs = prepare(entry)
    assert not blobs, "put its blobs first"
    return entry_to_write


def message_draft(text: str, *, role: Role = "user", id: str | None = None) -> Draft:
    """Return a message of one text as a draft."""
    message = Message(role=role, blocks=[Text(text=text)])
    return draft(message if id is None else Message(role=role, blocks=[Text(text=text)], id=id))


def note(text: str = "") -> Draft:
    """Return a note as a draft."""
    return draft(Note(text=text))


def title(text: str) -> Set:
    """Return a fact of the whole session, which listings show."""
    return Set(key="title", value=text, all={"title": text})


def start(session_id: str, *, first: str | None = None, fork: Fork | None = None, title: str | None = None) -> Draft:
    """Return the first entry of a log as a draft. Without `first`, its id is the session's."""
    if first is None:
        return draft(Start(id=session_id, fork=fork, title=title))
    return draft(Start(id=first, session=session_id, fork=fork, title=title))


def fork(store: Store, parent: str, at: Entry, child: str, *, first: str | None = None) -> Log:
    """Create a log that continues another one."""
    origin = Fork(parent, at.seq, at.id, first=first)
    return store.create(child, [start(child, fork=origin)], seq=at.seq + 1, parent=origin)


def undamaged_entries(log: Log, *, after: int = 0, before: int | None = None, reverse: bool = False) -> list[AnyEntry]:
    """Return the entries of a log. Fails if any line is damaged."""
    items = list(log.read(after=after, before=before, reverse=reverse))
    damage = [item for item in items if isinstance(item, Damage)]
    assert not damage, f"damage in a log that nobody harmed: {damage}"
    return [item for item in items if isinstance(item, Entry)]


def readable_entries(log: Log) -> list[AnyEntry]:
    """Return the entries of a log that can be read. Damaged lines are passed over."""
    return [item for item in log.read() if isinstance(item, Entry)]


def seqs(entries: list[AnyEntry]) -> list[int]:
    """Return the `seq` of each entry."""
    return [entry.seq for entry in entries]
