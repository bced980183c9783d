"""A conversation store for Pydantic AI.

    from turnlog.adapters.pydantic_ai import TurnlogConversationStore

    store = TurnlogConversationStore()
    conversation = await store.load("c1") or Conversation(conversation_id="c1")
    await store.save(await agent.run("hi", conversation=conversation))

An entry is a message with the entry's id. The record is a fact of the session, written with the entries as one batch
that fails if anybody else wrote anything: so nobody overwrites what he has not seen, be it usage alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from turnlog.adapters._shelf import AnyHome, Closing, Shelf, check_id, framework
from turnlog.errors import AlreadyExists, Conflict, NotFound
from turnlog.log.entry import AnyEntry, Message, Set
from turnlog.session import Session

framework("pydantic_ai.conversation_store", "pydantic-ai")

from pydantic import TypeAdapter  # noqa: E402
from pydantic_ai.conversation_store import (  # noqa: E402
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)

from turnlog.adapters.pydantic_ai.message import FRAMEWORK, Item, drafted, entries_of  # noqa: E402

__all__ = ["TurnlogConversationStore"]

_RECORD = "record"
_KNOWN = 4096
_RECORDS = TypeAdapter(ConversationRecord)


class TurnlogConversationStore(Closing, ConversationStore):
    """Keeps conversations in sessions of a home. Safe to use from many threads, tasks and processes.

    `delete` erases the messages that no fork needs.
    """

    def __init__(self, home: AnyHome = None) -> None:
        self.shelf = Shelf(home, FRAMEWORK)
        self._owners: OrderedDict[str, str] = OrderedDict()
        """Of entries that were seen lately, the conversation that has them."""

    # ── the primitives ────────────────────────────────────────────────────────────────────────────

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """The record of a conversation, or None."""
        return await self.shelf.run(self._find_record, check_id(conversation_id, "conversation_id"))

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        """The records there are, of a scope if told, the one that was saved last first."""
        return await self.shelf.run(self._find_records, scope, limit)

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record and its new entries: all of it, or nothing and a `ConversationConflict`."""
        check_id(record.conversation_id, "conversation_id")
        await self.shelf.run(self._keep, record, list(new_entries), expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Erase a conversation, and what no fork needs of it."""
        await self.shelf.run(self._erase, conversation_id, expected_revision)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """The entry with that id; `LookupError` if there is none."""
        return (await self.shelf.run(self._lead_to, entry_id, 1))[0]

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """The entries that lead to that one, or the last of them."""
        if head_id is None or limit == 0:
            return []
        return await self.shelf.run(self._lead_to, head_id, limit)

    # ── the same, on a thread ─────────────────────────────────────────────────────────────────────

    def _find_record(self, conversation_id: str) -> ConversationRecord | None:
        session = self.shelf.find(conversation_id)
        record = None if session is None else self._record_of(session)
        for entry_id in [] if record is None else [record.head_id, *record.branches]:
            if entry_id is not None:
                self._own(entry_id, conversation_id)
        return record

    def _find_records(self, scope: str | None, limit: int | None) -> list[ConversationRecord]:
        records: list[ConversationRecord] = []
        for info in self.shelf.home.sessions(labels={"framework": FRAMEWORK}):
            kept = info.listed.get(_RECORD)
            record = None if kept is None else _recorded(kept, info.id)
            if record is None:  # too big for a listing
                record = self._find_record(info.id)
            if record is not None and (scope is None or record.scope == scope):
                records.append(record)
        records.sort(key=lambda record: record.updated_at, reverse=True)
        return records[:limit]

    def _record_of(self, session: Session) -> ConversationRecord | None:
        """The record as the conversation is now: what Turnlog did to it since makes it another revision."""
        kept = cast("dict[str, Any]", session.get("listed") or {}).get(_RECORD)
        record = None if kept is None else _recorded(kept, session.id)
        nodes = session.path(last=1)
        at = nodes[0].id if nodes else None
        if record is None:
            if not session.head or session.labels.get("fork") == FRAMEWORK:
                return None  # made, and never written to
            record = ConversationRecord(conversation_id=session.id, head_id=None, revision="")
        elif at == record.head_id:
            return record
        messages = session.context(repair=False).messages
        record.head_id = messages[-1].id if messages else None
        record.deferred_tool_requests = None
        record.revision = f"{record.revision}@{session.seq}"
        self._own(at or "", session.id)
        return record

    def _keep(self, record: ConversationRecord, entries: list[ConversationEntry], expected: str | None) -> None:
        drafts: list[AnyEntry] = drafted(entries)
        name = record.conversation_id
        with self.shelf.locked(name):
            while True:
                session = self.shelf.find(name)
                stored = None if session is None else self._record_of(session)
                if (None if stored is None else stored.revision) != expected:
                    raise ConversationConflict(name)
                try:
                    self._put(record, entries, drafts, session, None if stored is None else stored.head_id)
                except (Conflict, AlreadyExists):
                    continue
                except NotFound:
                    self.shelf.forget(name)
                    continue
                break
        for entry in entries:
            self._own(entry.id, name)

    def _put(
        self,
        record: ConversationRecord,
        entries: list[ConversationEntry],
        drafts: list[AnyEntry],
        session: Session | None,
        head_id: str | None,
    ) -> None:
        above = entries[0].parent_id if entries else record.head_id
        if entries and record.head_id != entries[-1].id and record.head_id not in {entry.id for entry in entries}:
            raise ConversationConflict(record.conversation_id)
        if session is None and above is not None:
            try:
                source, parent = self._holder(above)
            except LookupError:
                raise ConversationConflict(record.conversation_id) from None
            labels = {"framework": FRAMEWORK, "conversation_id": record.conversation_id, "fork": FRAMEWORK}
            session = self.shelf.hold(source.fork(parent, id=record.conversation_id, labels=labels))
            head_id = above
        fact = Set(key="listed", value={_RECORD: _kept(record)}, exact=True)
        if session is None:
            self.shelf.make(
                record.conversation_id, labels={"conversation_id": record.conversation_id}, drafts=[*drafts, fact]
            )
            return
        to = None
        if above != head_id:
            parent = None if above is None else session.find(above)
            if above is not None and parent is None:
                raise ConversationConflict(record.conversation_id)
            to = 0 if parent is None else parent.seq
        session.append(*drafts, fact, to=to, alone=True)

    def _erase(self, conversation_id: str, expected: str) -> None:
        while True:
            session = self.shelf.find(conversation_id)
            stored = None if session is None else self._record_of(session)
            if session is None or stored is None or stored.revision != expected:
                raise ConversationConflict(conversation_id)
            try:
                self.shelf.purge(conversation_id, after=session.seq)
            except Conflict:
                continue
            return

    def _lead_to(self, entry_id: str, limit: int | None) -> list[ConversationEntry]:
        session, entry = self._holder(entry_id)
        wanted = None if limit is None else limit + 1  # the one before says what the first hangs on
        nodes = session.path(last=wanted, to=entry)
        if all(isinstance(node, Message) for node in nodes) and entry.seq == session.head:
            return entries_of(cast("list[Message]", nodes), session, frozenset(), limit)
        context = session.context(repair=False)
        ids = [message.id for message in context]
        if entry_id in ids:
            visible = context.messages[: ids.index(entry_id) + 1]
            return entries_of(visible[-wanted:] if wanted else visible, session, context.edited, limit)
        messages = [node for node in session.path(to=entry) if isinstance(node, Message)]  # a branch that was left
        return entries_of(messages[-wanted:] if wanted else messages, session, frozenset(), limit)

    # ── who has an entry ──────────────────────────────────────────────────────────────────────────

    def _own(self, entry_id: str, conversation_id: str) -> None:
        self._owners[entry_id] = conversation_id
        self._owners.move_to_end(entry_id)
        while len(self._owners) > _KNOWN:
            self._owners.popitem(last=False)

    def _holder(self, entry_id: str) -> tuple[Session, AnyEntry]:
        """The session that has an entry, and the entry; `LookupError` if there is none."""
        owner = self._owners.get(entry_id) or self.shelf.home.session_of(entry_id)
        session = None if owner is None else self.shelf.find(owner)
        if session is not None:
            # To find one by its id, all of a log is read once: the newest needs none of that.
            [newest] = session.path(last=1) or [None]
            entry = newest if newest is not None and newest.id == entry_id else session.find(entry_id)
            if entry is not None:
                return session, entry
        if self._owners.pop(entry_id, None) is not None:
            return self._holder(entry_id)
        raise LookupError(f"no entry {entry_id!r:.80}")


# ── records ───────────────────────────────────────────────────────────────────────────────────────


def _kept(record: ConversationRecord) -> Item:
    return _RECORDS.dump_python(record, mode="json", exclude_defaults=True)


def _recorded(kept: Item, conversation_id: str) -> ConversationRecord | None:
    """The record again; None for that of what a session was forked from."""
    if kept.get("conversation_id") != conversation_id:
        return None
    return _RECORDS.validate_json(msgspec.json.encode({"head_id": None, **kept}))
