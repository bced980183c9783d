"""Entries on their way into a session: appended in batches, behind all that is there."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from turnlog.errors import Conflict, Invalid
from turnlog.exchange.sourceindex import SourceIndex
from turnlog.formats import Problem, gist
from turnlog.log.draft import prepare
from turnlog.log.entry import AnyEntry, Entry, Message
from turnlog.log.payload import digest as digest_of
from turnlog.store import Store, derived
from turnlog.thread.appender import Appender
from turnlog.thread.reader import SessionReader
from turnlog.thread.target import rewind_to

_BATCH = 200
_BATCH_BYTES = 1 << 20


class EntryBatch:
    """Where the next entries of a source go."""

    def __init__(
        self, store: Store, appender: Appender, index: SourceIndex, origin: dict[str, Any], written: datetime | None
    ) -> None:
        self._store = store
        self._appender = appender
        self._history = appender.history
        self._session = SessionReader(appender.history)
        self._index = index
        self._origin = origin
        self._written = written
        self._entries: list[Entry] = []
        self._bytes = 0
        self._blobs: dict[str, bytes] = {}
        """What entries of the batch refer to."""
        self._tells_time = False
        """Whether new records say when they were made; else they are as new as their file."""
        self.problems: list[Problem] = []
        self.added: int = 0
        self.is_keyed = False
        """Whether the records of the source have keys of their own."""
        self.came_back = False
        """Whether what was said here is in the source by now: somebody wrote it there."""

    @property
    def pending(self) -> str | None:
        """The id of the newest node that is not appended yet."""
        return next((entry.id for entry in reversed(self._entries) if entry.is_node), None)

    def put_blobs(self, blobs: list[bytes]) -> None:
        """What the next entry refers to."""
        self._blobs.update({digest_of(data): data for data in blobs})

    def add(self, entry: Entry) -> None:
        """One more, if it is new; goes in with others, when there are enough of them."""
        if entry.is_node and self._index.children.get(self._index.cursor) and self._is_ours(entry):
            return
        if entry.is_node and not self._has_nodes() and self._session.head != self._index.cursor:
            self.flush()
            try:
                prepare(entry)
            except Invalid as error:  # nothing is moved for what cannot be kept
                self.problems.append(Problem(f"a record that cannot be kept: {error.message}"))
                return
            self.jump(self._index.cursor, why="branch")
        if entry.at is not None:
            self._index.latest, self._tells_time = entry.at, True
        elif self._tells_time:
            entry = replace(entry, at=self._index.latest)
        self._entries.append(entry)
        self._bytes += _weight(entry)
        if len(self._entries) >= _BATCH or self._bytes >= _BATCH_BYTES:
            self.flush()

    def _is_ours(self, entry: Entry) -> bool:
        """Whether that is what was said here after the same node: then it came back from there, and is not new."""
        if self._has_nodes() or not (wanted := gist(entry)):
            return False
        for seq, is_theirs in self._index.children.get(self._index.cursor, []):
            if is_theirs and (self.is_keyed or not self.came_back):
                continue
            if gist(self._history.whole(self._history.at(seq))) == wanted:
                self.flush()
                self.came_back = True
                self._index.cursor = self._index.seqs[entry.id] = seq
                return True
        return False

    def _has_nodes(self) -> bool:
        return any(entry.is_node for entry in self._entries)

    def flush(self) -> None:
        """Append all that waits."""
        batch, self._entries, self._bytes = self._entries, [], 0
        if not batch:
            return
        try:
            appended = self.append(batch)
        except Invalid as error:
            if len(batch) == 1:
                self.problems.append(Problem(f"a record that cannot be kept: {error.message}"))
                return
            for entry in batch:  # one bad record costs only itself
                self._entries = [entry]
                self.flush()
            return
        for entry in appended:
            self._index.seqs[entry.id] = entry.seq
            self._index.measure(entry)
            self.added += 1
            if entry.parent is not None:
                self._index.cursor = entry.seq

    def append(self, entries: list[Any]) -> list[AnyEntry]:
        """Append these, with what they refer to."""
        blobs, self._blobs = self._blobs, {}
        with self._store.keeping() if blobs else nullcontext():
            if blobs:
                derived.put(self._store, blobs)
            return self._behind([self.timed(entry) for entry in entries])

    def _behind(self, entries: list[Any]) -> list[AnyEntry]:
        """Append behind all that is known: then none of it can be there. Hooks and others may be faster."""
        while entries:
            derived.vouch(self._history.log, (entry.id for entry in entries))
            try:
                return self._appender.append(entries, alone=True)
            except Conflict:
                last_seq = self._history.state.seq
                self._appender.catch_up()
                cursor = self._index.cursor
                for entry in self._session.entries(after=last_seq):
                    self._index.take_in(entry)
                self._index.cursor = cursor
                entries = [entry for entry in entries if entry.id not in self._index.seqs]
        return []

    def timed(self, entry: Any) -> Any:
        """What has no time of its own is as old as the conversation; where that says none, as its file."""
        if entry.at is not None:
            return entry
        is_of_now = entry.is_node and not self._tells_time
        times = (self._index.latest, self._written if is_of_now or self._index.latest is None else None)
        return replace(entry, at=max(filter(None, times), default=None))

    def jump(self, seq: int, *, why: str, name: str = "", at: datetime | None = None, origin: Any = None) -> None:
        """The conversation goes on after that node, wherever it stands here."""
        head = rewind_to(self._history, to=seq, before=None, turns=None)
        head = replace(head, why=why, at=at or self._index.latest, origin=origin or self._origin)
        appended = self.append([replace(head, id=name) if name else head])
        self._index.seqs[appended[0].id] = appended[0].seq


def _weight(entry: Entry) -> int:
    if not isinstance(entry, Message):
        return 200
    return 200 + sum(len(getattr(block, "text", "") or "") for block in entry.blocks)
