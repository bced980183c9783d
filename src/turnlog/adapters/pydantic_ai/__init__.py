"""A conversation store for Pydantic AI.

    from turnlog.adapters.pydantic_ai import TurnlogConversationStore

    store = TurnlogConversationStore()
    conversation = await store.load("c1") or Conversation(conversation_id="c1")
    await store.save(await agent.run("hi", conversation=conversation))

An entry is a message with the entry's id. The record is a fact of the session, written with the entries as one batch
that fails if anybody else wrote anything: so nobody overwrites what he has not seen, be it usage alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import msgspec

from turnlog.adapters._argument import check_id
from turnlog.adapters._framework import import_framework
from turnlog.adapters._recent import Recent
from turnlog.adapters._sessions import AdapterSessions, AnyHome, ClosableAdapter
from turnlog.errors import AlreadyExists, Conflict, NotFound
from turnlog.log.entry import AnyEntry, Compaction, Message, Set
from turnlog.log.ids import process_word
from turnlog.session import Session
from turnlog.thread.reader import history_of

import_framework("pydantic_ai.conversation_store", "pydantic-ai")

from pydantic import TypeAdapter  # noqa: E402
from pydantic_ai.conversation_store import (  # noqa: E402
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)

from turnlog.adapters.pydantic_ai.message import FRAMEWORK, Item, drafted, entries_of  # noqa: E402

__all__ = ["TurnlogConversationStore"]

_RECORD, _END = "record", "end"
"""The keys of a record in its session's listing, and of the number of the entry that it is in."""
_KNOWN = 4096
_RECORDS = TypeAdapter(ConversationRecord)


class _Save(NamedTuple):
    """What is saved at once: a record, and its new entries, also as drafts."""

    record: ConversationRecord
    entries: list[ConversationEntry]
    drafts: list[AnyEntry]


class TurnlogConversationStore(ClosableAdapter, ConversationStore):
    """Keeps conversations in sessions of a home. Safe to use from many threads, tasks and processes.

    `delete` erases the messages that no fork needs.
    """

    def __init__(self, home: AnyHome = None) -> None:
        self.sessions = AdapterSessions(home, FRAMEWORK)
        self._owners: Recent[str, str] = Recent(_KNOWN)
        """The conversations of the entries that were seen last, by the ids of the entries."""

    # ── the primitives ────────────────────────────────────────────────────────────────────────────

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """The record of a conversation, or None."""
        return await self.sessions.run(self._find_record, check_id(conversation_id, "conversation_id"))

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        """The records, of one scope if given, the newest first."""
        return await self.sessions.run(self._find_records, scope, limit)

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record and its new entries: all of it, or nothing and a `ConversationConflict`."""
        check_id(record.conversation_id, "conversation_id")
        await self.sessions.run(self._save, record, list(new_entries), expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Erase a conversation, and what no fork needs of it."""
        await self.sessions.run(self._erase, conversation_id, expected_revision)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """The entry with that id; `LookupError` if there is none."""
        return (await self.sessions.run(self._history_to, entry_id, 1))[0]

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """The entries that lead to that one, or the last of them."""
        if head_id is None or limit == 0:
            return []
        return await self.sessions.run(self._history_to, head_id, limit)

    # ── the same, on a thread ─────────────────────────────────────────────────────────────────────

    def _find_record(self, conversation_id: str) -> ConversationRecord | None:
        session = self.sessions.find(conversation_id)
        record = None if session is None else self._record_of(session)
        for entry_id in [] if record is None else [record.head_id, *record.branches]:
            if entry_id is not None:
                self._owners.put(entry_id, conversation_id)
        return record

    def _find_records(self, scope: str | None, limit: int | None) -> list[ConversationRecord]:
        records: list[ConversationRecord] = []
        for info in self.sessions.infos():
            is_current = info.listed.get(_END) == info.seq  # else it is too big for a listing, or something was done
            record = _decode_record(info.listed[_RECORD], info.id) if is_current else self._find_record(info.id)
            if record is not None and (scope is None or record.scope == scope):
                records.append(record)
        records.sort(key=lambda record: record.updated_at, reverse=True)
        return records[:limit]

    def _record_of(self, session: Session) -> ConversationRecord | None:
        """The record of a conversation as it is now. Changes made with Turnlog since give it another revision."""
        stored = cast("dict[str, Any]", session.get("listed") or {}).get(_RECORD)
        record = None if stored is None else _decode_record(stored, session.id)
        nodes = session.path(last=1)
        newest_id = nodes[0].id if nodes else None
        if record is None:
            if not session.head or session.labels.get("fork") == FRAMEWORK:
                return None  # made, and never written to
            record = ConversationRecord(conversation_id=session.id, head_id=None, revision="")
            record.updated_at = (nodes[0].at if nodes else None) or record.updated_at
        elif newest_id == record.head_id:
            return record
        messages = session.context(repair=False).messages
        record.head_id = messages[-1].id if messages else None
        record.deferred_tool_requests = None
        record.revision = f"{record.revision}@{session.seq}"
        if newest_id is not None:
            self._owners.put(newest_id, session.id)
        return record

    def _save(self, record: ConversationRecord, entries: list[ConversationEntry], expected: str | None) -> None:
        save = _Save(record, entries, drafted(entries))
        name = record.conversation_id
        with self.sessions.locked(name):
            while True:
                session = self.sessions.find(name)
                stored = None if session is None else self._record_of(session)
                if (None if stored is None else stored.revision) != expected:
                    raise ConversationConflict(name)
                try:
                    self._write(save, session, None if stored is None else stored.head_id)
                except (Conflict, AlreadyExists):
                    continue
                except NotFound:
                    self.sessions.forget(name)
                    continue
                break
        for entry in entries:
            self._owners.put(entry.id, name)

    def _write(self, save: _Save, session: Session | None, head_id: str | None) -> None:
        """Append to a session with that head; without one, begin it, as a fork if its first entry has a parent."""
        record, entries, drafts = save
        parent_id = entries[0].parent_id if entries else record.head_id
        if entries and record.head_id not in {entry.id for entry in entries}:
            raise ConversationConflict(record.conversation_id)
        if session is None:
            if parent_id is None:
                labels = {"conversation_id": record.conversation_id}
                fact = _fact(record, len(drafts) + 2)
                self.sessions.create(record.conversation_id, labels=labels, drafts=[*drafts, fact])
                return
            session, head_id = self._forked(record.conversation_id, parent_id), parent_id
        to = None
        if parent_id != head_id:
            parent = None if parent_id is None else session.find(parent_id)
            if parent_id is not None and parent is None:
                raise ConversationConflict(record.conversation_id)
            to = 0 if parent is None else parent.seq
        end = _seq_after(session, len(drafts) + 1, is_moved=to is not None)
        session.append(*drafts, _fact(record, end), to=to, alone=True)

    def _forked(self, conversation_id: str, parent_id: str) -> Session:
        """A new session for a conversation that continues another one behind that entry."""
        try:
            source, parent = self._holder(parent_id)
        except LookupError:
            raise ConversationConflict(conversation_id) from None
        labels = {"framework": FRAMEWORK, "conversation_id": conversation_id, "fork": FRAMEWORK}
        return self.sessions.hold(source.fork(parent, id=conversation_id, labels=labels))

    def _erase(self, conversation_id: str, expected: str) -> None:
        while True:
            session = self.sessions.find(conversation_id)
            stored = None if session is None else self._record_of(session)
            if session is None or stored is None or stored.revision != expected:
                raise ConversationConflict(conversation_id)
            try:
                self.sessions.purge(conversation_id, after=session.seq)
            except Conflict:
                continue
            return

    def _history_to(self, entry_id: str, limit: int | None) -> list[ConversationEntry]:
        session, entry = self._holder(entry_id)
        count = None if limit is None else limit + 1  # the one before is the parent of the first
        nodes = session.path(last=count, to=entry)
        if all(isinstance(node, Message) for node in nodes) and entry.seq == session.head:
            return entries_of(cast("list[Message]", nodes), session, frozenset(), limit)
        context = session.context(repair=False)
        ids = [message.id for message in context]
        if entry_id in ids:
            visible = context.messages[: ids.index(entry_id) + 1]
            return entries_of(visible[-count:] if count else visible, session, context.edited, limit)
        messages = [node for node in session.path(to=entry) if isinstance(node, Message)]  # a branch that was left
        return entries_of(messages[-count:] if count else messages, session, frozenset(), limit)

    # ── who has an entry ──────────────────────────────────────────────────────────────────────────

    def _holder(self, entry_id: str) -> tuple[Session, AnyEntry]:
        """The session that has an entry, and the entry; `LookupError` if there is none."""
        owner = self._owners.get(entry_id) or self.sessions.home.session_of(entry_id)
        session = None if owner is None else self.sessions.find(owner)
        if session is not None:
            # To find one by its id, all of a log is read once: the newest needs none of that.
            [newest] = session.path(last=1) or [None]
            entry = newest if newest is not None and newest.id == entry_id else session.find(entry_id)
            entry = entry or _compaction_with(entry_id, session)
            if entry is not None:
                return session, entry
        if self._owners.pop(entry_id) is not None:
            return self._holder(entry_id)
        raise LookupError(f"no entry {entry_id!r:.80}")


def _seq_after(session: Session, count: int, *, is_moved: bool) -> int:
    """The number of the last of so many entries when they are appended; `is_moved`: behind a move of the head.

    The first write of a process puts an entry of its own before the batch, and a move of the head is in the batch.
    """
    is_first_write = process_word() not in history_of(session).state.writers
    return session.seq + is_first_write + is_moved + count


def _compaction_with(message_id: str, session: Session) -> AnyEntry | None:
    """The compaction on the path that has a message, which is no entry of its own."""
    compactions = (node for node in reversed(session.path()) if isinstance(node, Compaction))
    for node in compactions:
        if any(isinstance(part, Message) and part.id == message_id for part in node.replacement):
            return node
    return None


# ── records ───────────────────────────────────────────────────────────────────────────────────────


def _fact(record: ConversationRecord, end: int) -> Set:
    """A record as a fact. `end` is the number of its entry: by that a listing tells whether anything came after it."""
    dumped: Item = _RECORDS.dump_python(record, mode="json", exclude_defaults=True)
    return Set(key="listed", value={_RECORD: dumped, _END: end}, exact=True)


def _decode_record(dumped: Item, conversation_id: str) -> ConversationRecord | None:
    """Decode a record; None if it is of another conversation, from which this one was forked."""
    if dumped.get("conversation_id") != conversation_id:
        return None
    return _RECORDS.validate_json(msgspec.json.encode({"head_id": None, **dumped}))
