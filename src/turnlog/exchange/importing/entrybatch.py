"""Entries on their way into a session: appended in batches, behind all that is there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from datetime import datetime
from itertools import takewhile
from typing import Any, TypeVar

from msgspec.structs import replace

from turnlog.errors import Conflict, Invalid
from turnlog.exchange.importing.sourceindex import SourceIndex
from turnlog.formats import Problem, Record
from turnlog.log.draft import prepare
from turnlog.log.entry import AnyEntry, Entry, Head, Message
from turnlog.log.erasure.content import stripped, void_of
from turnlog.log.identity import gist
from turnlog.log.payload import digest as digest_of
from turnlog.log.prompt.promptmessage import is_prompt
from turnlog.store import Store, derived
from turnlog.thread.appender import Appender
from turnlog.thread.reader import SessionReader
from turnlog.thread.target import rewind_to

_E = TypeVar("_E", bound=Entry)
_BATCH = 200
_BATCH_BYTES = 1 << 20


class EntryBatch:
    """Collects the entries of one import and appends them to the session."""

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
        """When the source was last written."""
        erasures = derived.erasures(store, self._history.first).get(self._history.first, [])
        self._erased_ids = {erasure.id for erasure in erasures if not erasure.part}
        """What was erased here does not come back, also not with the whole session."""
        self._entries: list[Entry] = []
        self._bytes = 0
        self._blobs: dict[str, bytes] = {}
        """The blobs that the entries of the batch refer to, by digest."""
        self._has_times = False
        """Whether new records have times; otherwise they are as new as their file."""
        self.problems: list[Problem] = []
        self.added: int = 0
        self.is_keyed = False
        """Whether the records of the source have keys of their own."""
        self.own_head = self._session.head
        """The head before the import, or the one that another writer has set since."""
        self.repeats_own_nodes = False
        """Whether the source now has nodes that were made here: a program wrote them into it."""

    @property
    def pending(self) -> str | None:
        """The id of the newest node that is not appended yet."""
        return next((entry.id for entry in reversed(self._entries) if entry.is_node), None)

    def add_record(self, record: Record, entry_id: str, turn: str | None = None) -> None:
        """Add the entry of a record. If it was erased here, only what is left of it."""
        entry = replace(record.entry, id=entry_id, origin=record.entry.origin or self._origin)
        if turn is not None:
            entry = replace(entry, turn=turn)
        blobs = record.blobs
        if entry_id in self._erased_ids:
            entry, blobs = replace(stripped(entry), void=void_of(entry, is_prompt)), []
        if record.names:
            self.flush()
            entry = replace(entry, **self._seqs_of(record.names))
        self.add(entry, blobs)

    def _seqs_of(self, names: dict[str, str]) -> dict[str, int]:
        """The entries of the records that are named in the fields of another one."""
        seqs: dict[str, int] = {}
        for field, key in names.items():
            entry_id = self._index.key_of(key)
            seqs[field] = self._index.seqs.get(entry_id) or self._index.find(entry_id)
            if not seqs[field]:
                self.problems.append(Problem(f"names record {key!r:.80}, which is not there"))
        return seqs

    def add(self, entry: Entry, blobs: Sequence[bytes] = ()) -> None:
        """Add an entry, if it is new, with the blobs that it refers to. A full batch is appended."""
        if entry.is_node and self._index.children.get(self._index.cursor) and self._match_own_node(entry):
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
            self._index.latest, self._has_times = entry.at, True
        elif self._has_times:
            entry = replace(entry, at=self._index.latest)
        self._entries.append(entry)
        self._blobs.update({digest_of(data): data for data in blobs})
        self._bytes += _size_of(entry)
        if len(self._entries) >= _BATCH or self._bytes >= _BATCH_BYTES:
            self.flush()

    def _match_own_node(self, entry: Entry) -> bool:
        """Move the cursor to a node of ours that the source repeats: such a node is not new."""
        if self._has_nodes() or not (wanted := gist(entry)):
            return False
        for child in self._index.children.get(self._index.cursor, []):
            if child.is_from_source and (self.is_keyed or not self.repeats_own_nodes):
                continue
            if gist(self._history.whole(self._history.at(child.seq))) == wanted:
                self.flush()
                self.repeats_own_nodes = True
                self._index.cursor = self._index.seqs[entry.id] = child.seq
                return True
        return False

    def _has_nodes(self) -> bool:
        return any(entry.is_node for entry in self._entries)

    def flush(self) -> None:
        """Append all that waits."""
        batch, blobs = self._entries, self._blobs
        self._entries, self._blobs, self._bytes = [], {}, 0
        # No collection must come before each of them is appended or refused: not even between the two attempts.
        with self._store.keeping() if blobs else nullcontext():
            if blobs:
                derived.put(self._store, blobs)
            if batch:
                self._append_or_refuse(batch)

    def _append_or_refuse(self, batch: list[Entry]) -> None:
        """Append these entries. If the log does not take them, each is appended alone: one costs no other."""
        try:
            appended = self.append(batch)
        except Invalid as error:
            if len(batch) == 1:
                self.problems.append(Problem(f"a record that cannot be kept: {error.message}"))
                return
            for entry in batch:
                self._append_or_refuse([entry])
            return
        for entry in appended:
            self._index.seqs[entry.id] = entry.seq
            self._index.measure(entry)
            self.added += 1
            if entry.parent is not None:
                self._index.cursor = entry.seq

    def append(self, entries: Sequence[Entry]) -> list[AnyEntry]:
        """Append these at once, whatever waits, behind all that is known: so nothing is there twice.

        Hooks and others may be faster.
        """
        entries = [self.timed(entry) for entry in entries]
        while entries:
            derived.vouch(self._history.log, (entry.id for entry in entries))
            try:
                return self._appender.append(entries, alone=True)
            except Conflict:
                self._take_in_new_entries()
                entries = self._without_known(entries)
                moved = any(entry.is_node for entry in entries) and self._session.head != self._index.cursor
                if moved:
                    self.jump(self._index.cursor, why="branch")
        return []

    def _take_in_new_entries(self) -> None:
        """Add to the index what others have appended meanwhile."""
        last_seq, cursor = self._history.state.seq, self._index.cursor
        self._appender.catch_up()
        for entry in self._session.entries(after=last_seq):
            self._index.take_in(entry)
            if entry.origin is None and (isinstance(entry, Head) or entry.parent is not None):
                self.own_head = entry.to if isinstance(entry, Head) else entry.seq
        self._index.cursor = cursor

    def _without_known(self, entries: Sequence[Entry]) -> list[Entry]:
        """The entries that are not in the log yet. The first of them follows the last one that is."""
        new = [entry for entry in entries if entry.id not in self._index.seqs]
        for entry in takewhile(lambda entry: entry.id in self._index.seqs, entries):
            if entry.is_node:
                self._index.cursor = self._index.seqs[entry.id]
        return new

    def timed(self, entry: _E) -> _E:
        """Return the entry with a time. One without is as old as the conversation, or else as its file."""
        latest, written = self._index.latest, self._written
        if entry.at is not None:
            return entry
        if latest is None:
            return replace(entry, at=written)
        if written is not None and entry.is_node and not self._has_times:  # a new one, as new as the file
            return replace(entry, at=max(latest, written))
        return replace(entry, at=latest)

    def jump(self, seq: int, *, why: str, entry_id: str = "", at: datetime | None = None, origin: Any = None) -> None:
        """Move the head to a node, wherever it is now."""
        head = rewind_to(self._history, to=seq, before=None, turns=None)
        head = replace(head, why=why, at=at or self._index.latest, origin=origin or self._origin)
        appended = self.append([replace(head, id=entry_id) if entry_id else head])
        self._index.seqs.update({entry.id: entry.seq for entry in appended})


def _size_of(entry: Entry) -> int:
    if not isinstance(entry, Message):
        return 200
    return 200 + sum(len(getattr(block, "text", "") or "") for block in entry.blocks)
