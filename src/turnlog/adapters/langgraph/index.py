"""The index of one thread: its checkpoints, writes and messages, as they come up in its log."""

from __future__ import annotations

from typing import Any, NamedTuple, TypedDict, cast, final

from langchain_core.messages import BaseMessage
from msgspec.structs import replace

from turnlog.adapters.langgraph.message import FRAMEWORK, restored
from turnlog.adapters.langgraph.value import StoredValue
from turnlog.log.entry import AnyEntry, Compaction, Custom, Edit, Head, Message, Start, Uncompact
from turnlog.log.item import kept_of
from turnlog.session import Session

CHECKPOINT, WRITES, HIDDEN = f"{FRAMEWORK}.checkpoint", f"{FRAMEWORK}.writes", f"{FRAMEWORK}.hidden"
_START = "__start__"
"""The channel of a graph's input; a checkpoint has it until the input is taken in."""
Key = tuple[str, str]
"""A namespace and the id of a checkpoint in it."""


class _CheckpointData(TypedDict):
    ns: str
    id: str
    parent: str | None
    values: dict[str, StoredValue]
    """The values by channel; where nothing may be readable, channels have numbers."""


@final
class ReadableCheckpoint(_CheckpointData):
    """A checkpoint as the log has it."""

    c: StoredValue
    """The other fields, with the position that the values had among them."""
    m: StoredValue
    """The metadata."""


@final
class OpaqueCheckpoint(_CheckpointData):
    """A checkpoint of which nothing may be readable."""

    x: StoredValue
    """The other fields, the metadata, the names of the channels, and the namespace."""


CheckpointData = ReadableCheckpoint | OpaqueCheckpoint


class WritesData(TypedDict):
    """What a task wrote to a checkpoint, as the log has it."""

    ns: str
    id: str
    task: str
    again: bool
    """Whether these writes replace earlier ones."""
    writes: list[tuple[int, Any]]
    """Numbers, and each with its channel and the stored value; see `Write.data`."""
    path: Any


class Stored(NamedTuple):
    """A checkpoint in the log."""

    seq: int
    key: Key
    parent: str | None
    data: CheckpointData


class Write(NamedTuple):
    """One write of a task."""

    path: Any
    """The path of the task; a stored value where nothing may be readable."""
    task: str
    number: int
    data: Any
    """Its channel and the stored value; both in one stored value where nothing may be readable."""


class ValueSource(NamedTuple):
    """A value that a checkpoint has itself: the checkpoint and the key it is under, and the stored value."""

    where: list[Any]
    stored: StoredValue


class StoredElements(NamedTuple):
    """The elements of a list that can be read, and whether those are all."""

    readable: list[StoredValue]
    is_whole: bool


class ThreadIndex:
    """What the log of one session has for LangGraph. Whoever uses it holds the lock of that thread."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.seq = 0
        self.checkpoints: dict[Key, Stored] = {}
        self._writes: dict[Key, dict[tuple[str, int], Write]] = {}
        self.messages: dict[str, Message] = {}
        self._message_seqs: set[int] = set()
        self._ids: dict[str, str] = {}
        """Entries by the ids that LangChain has for their messages."""
        self._edits: dict[int, Edit] = {}
        self.hidden: set[Key] = set()
        self._left_behind: set[Key] = set()
        """Checkpoints that somebody rewound past, not by way of LangGraph."""
        self._newest: dict[str, Key] = {}
        self._parents: dict[int, int] = {}
        self._keys: dict[int, Key] = {}
        self._compacted: dict[int, Key | None] = {}
        """Where the graph stood at each compaction."""
        self.uncompacted: tuple[int, Key] | None = None
        """The last compaction taken back: when, and where the graph stood before it."""
        self.last_outside_seq = 0
        """The last node that is not LangGraph's: a message, a compaction, an edit."""
        self.current: Key | None = None
        """The checkpoint of the graph itself that the conversation stands at."""

    # ── taking in ─────────────────────────────────────────────────────────────────────────────────

    def catch_up(self) -> None:
        """Take in what the session knows by now."""
        if self.seq < self.session.seq:
            self._read()

    def _read(self) -> None:
        for entry in self.session.entries(after=self.seq):
            self._apply(entry)

    def apply(self, entries: list[AnyEntry]) -> None:
        """Take in what was just appended; where others wrote something before it, that too."""
        if entries[0].seq == self.seq + 1 and entries[-1].seq == self.seq + len(entries):
            for entry in entries:
                self._apply(entry)
        else:
            self._read()

    def _apply(self, entry: AnyEntry) -> None:
        if entry.seq <= self.seq:
            return
        self.seq = entry.seq
        if entry.parent is not None:
            self._parents[entry.seq] = entry.parent
        if isinstance(entry, Custom):
            self._apply_custom(entry)
        elif isinstance(entry, Message):
            self.messages[entry.id] = entry
            self._message_seqs.add(entry.seq)
            if (kept := kept_of(entry, FRAMEWORK)) is not None:
                name = cast("dict[str, Any]", kept["item"]).get("id")
                if isinstance(name, str):
                    self._ids[name] = entry.id
            else:
                self.last_outside_seq = entry.seq
        elif isinstance(entry, (Compaction, Uncompact, Edit)):
            self.last_outside_seq = entry.seq
            if isinstance(entry, Edit):
                self._edits[entry.entry] = entry
            elif isinstance(entry, Compaction):
                self._compacted[entry.seq] = self.current
            elif (key := self._compacted.get(entry.compaction)) is not None:
                self.uncompacted = entry.seq, key
        elif isinstance(entry, Head):
            self._stand_at(entry.to, by_graph=entry.id.endswith("/to"))
        elif isinstance(entry, Start) and entry.fork is not None and "thread_id" not in entry.labels:
            self._stand_at(entry.fork.seq, by_graph=False)

    def _apply_custom(self, entry: Custom) -> None:
        if entry.kind == CHECKPOINT:
            self._apply_checkpoint(entry.seq, cast("CheckpointData", entry.data))
        elif entry.kind == WRITES:
            self._apply_writes(cast("WritesData", entry.data))
        elif entry.kind == HIDDEN:
            self.hidden.update((ns, name) for ns, name in entry.data["checkpoints"])
            self._find_newest()

    def _apply_checkpoint(self, seq: int, data: CheckpointData) -> None:
        key = (data["ns"], data["id"])
        self.checkpoints[key] = Stored(seq, key, data["parent"], data)
        self._keys[seq] = key
        self.hidden.discard(key)
        self._left_behind.discard(key)
        if self._newest.get(key[0], key) <= key:
            self._newest[key[0]] = key
        for stored in data["values"].values():
            for added in stored.get("+", ()):
                if "m" in added and (langchain_id := added.get("i")):
                    self._ids[langchain_id] = added["m"]
        if not data["ns"]:
            self.current = key

    def _apply_writes(self, data: WritesData) -> None:
        writes = self._writes.setdefault((data["ns"], data["id"]), {})
        for index, stored in data["writes"]:
            slot = (data["task"], index)
            if data["again"] or slot not in writes:
                writes[slot] = Write(data["path"], data["task"], index, stored)

    def _stand_at(self, node: int, *, by_graph: bool) -> None:
        """The conversation goes on from that node. Unless the graph itself did that, what it leaves is left."""
        on_path: set[Key] = set()
        self.current, is_said = None, by_graph or not self.messages
        while node:
            key = self._keys.get(node)
            is_said = is_said or node in self._message_seqs
            if key is not None and (is_said or _START not in self.checkpoints[key].data["values"]):
                is_said = True  # an input whose message is left behind is left with it
                on_path.add(key)
                if self.current is None and not key[0]:
                    self.current = key
            node = self._parents.get(node, 0)
        if not by_graph:
            self._left_behind = {key for key in self.checkpoints if key not in on_path}
            self._find_newest()

    def _find_newest(self) -> None:
        visible = sorted(key for key in self.checkpoints if key not in self.hidden and key not in self._left_behind)
        self._newest = {key[0]: key for key in visible}

    # ── checkpoints and writes ────────────────────────────────────────────────────────────────────────────────────

    def latest(self, ns: str) -> Stored | None:
        """The newest checkpoint of a namespace."""
        key = self._newest.get(ns)
        return None if key is None else self.checkpoints[key]

    def get(self, ns: str, name: str) -> Stored | None:
        """The checkpoint with that id, if it is not hidden."""
        return None if (ns, name) in self.hidden else self.checkpoints.get((ns, name))

    def visible(self) -> list[Stored]:
        """Every checkpoint that is not hidden, oldest first."""
        return [stored for key, stored in self.checkpoints.items() if key not in self.hidden]

    def writes_of(self, key: Key) -> list[Write]:
        """What was written to a checkpoint, in no order."""
        return list(self._writes.get(key, {}).values())

    # ── stored values ─────────────────────────────────────────────────────────────────────────────

    def source_of(self, ns: str, name: str, key: str) -> ValueSource | None:
        """The source of a value; None if the checkpoint that has it is lost."""
        while (stored := self.checkpoints.get((ns, name))) is not None:
            kept = stored.data["values"][key]
            if "@" not in kept:
                return ValueSource([name, key], kept)
            name, key = kept["@"]
        return None

    def elements_of(self, ns: str, kept: StoredValue) -> StoredElements:
        """The elements of a list."""
        additions: list[tuple[int, list[StoredValue]]] = []
        base: list[Any] | None = None
        source: ValueSource | None = ValueSource([], kept)
        while source is not None:
            base, added = source.stored.get("l"), source.stored.get("+", [])
            additions.append((base[2] if base else 0, added))
            source = self.source_of(ns, base[0], base[1]) if base else None
        elements: list[StoredValue] = []
        for same, added in reversed(additions):
            del elements[same:]
            elements.extend(added)
        readable = [element for element in elements if "m" not in element or element["m"] in self.messages]
        return StoredElements(readable, not base and len(readable) == len(elements))

    # ── messages ──────────────────────────────────────────────────────────────────────────────────

    def find_message(self, langchain_id: str) -> Message | None:
        """The entry of a message by the id that LangChain has for it; None if there is none."""
        return self.messages.get(self._ids.get(langchain_id, langchain_id))

    def restored(self, entry: Message) -> list[BaseMessage]:
        """What an entry is for LangChain, as it was edited last."""
        edit = self._edits.get(entry.seq)
        if edit is not None:
            entry = replace(entry, blocks=edit.blocks or [])
        return restored(entry, self.session.blob, edited=edit is not None)
