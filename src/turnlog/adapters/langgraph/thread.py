"""What is known of one thread: its checkpoints, writes and messages, as they come up in its log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, cast

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import WRITES_IDX_MAP
from msgspec.structs import replace

from turnlog.adapters.langgraph.message import FRAMEWORK, restored
from turnlog.adapters.langgraph.value import Element, Kept, ValueWriter, loaded
from turnlog.log.entry import AnyEntry, Compaction, Custom, Edit, Head, Message, Start, Uncompact
from turnlog.log.item import kept_of
from turnlog.session import Session

CHECKPOINT, WRITES, HIDDEN = f"{FRAMEWORK}.checkpoint", f"{FRAMEWORK}.writes", f"{FRAMEWORK}.hidden"
_START = "__start__"
"""The channel of a graph's input; a checkpoint has it until the input is taken in."""
_REMEMBERED = 4
"""Of so many checkpoints the objects are remembered that were handed in or out."""
Key = tuple[str, str]
"""A namespace and the id of a checkpoint in it."""
Loads = Callable[[tuple[str, bytes]], Any]


class Stored(NamedTuple):
    """A checkpoint in the log."""

    seq: int
    key: Key
    parent: str | None
    data: dict[str, Any]


class Write(NamedTuple):
    """One write of a task."""

    path: Any
    """That of the task; as it is kept where nothing may be readable."""
    task: str
    number: int
    data: Any
    """Its channel, and how its value is kept."""


class SeenValue(NamedTuple):
    """The value of a channel that was handed in or out: where it is kept, and how."""

    where: list[Any] | None
    """None for a list that no checkpoint has: it was changed by others, or a part of it was lost."""
    kept: Kept | None
    elements: list[Element]


class Thread:
    """The index of one session. Whoever uses it holds the lock of that thread."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.seq = 0
        self.checkpoints: dict[Key, Stored] = {}
        self._writes: dict[Key, dict[tuple[str, int], Write]] = {}
        self._messages: dict[str, Message] = {}
        self._said_at: set[int] = set()
        self._ids: dict[str, str] = {}
        """Entries by the ids that LangChain has for their messages."""
        self._edits: dict[int, Edit] = {}
        self.hidden: set[Key] = set()
        self._gone: set[Key] = set()
        """Checkpoints that somebody rewound past, not by way of LangGraph."""
        self._newest: dict[str, Key] = {}
        self._parents: dict[int, int] = {}
        self._keys: dict[int, Key] = {}
        self._compacted: dict[int, Key | None] = {}
        """Where the graph stood at each compaction."""
        self._uncompacted: tuple[int, Key] | None = None
        """The last compaction taken back: when, and where the graph stood before it."""
        self._told = 0
        """The last node that is not LangGraph's: a message, a compaction, an edit."""
        self.here: Key | None = None
        """The checkpoint of the graph itself that the conversation stands at."""
        self._seen: dict[Key, dict[str, SeenValue]] = {}
        self.recent: dict[int, Element] = {}
        """Messages that were written and are in no list yet, by their identity."""

    # ── taking in ─────────────────────────────────────────────────────────────────────────────────

    def sync(self) -> None:
        """Take in what the session knows by now."""
        if self.seq < self.session.seq:
            self._read()

    def _read(self) -> None:
        for entry in self.session.entries(after=self.seq):
            self._take(entry)

    def take(self, entries: list[AnyEntry]) -> None:
        """Take in what was just appended; where others wrote something before it, that too."""
        if entries[0].seq == self.seq + 1 and entries[-1].seq == self.seq + len(entries):
            for entry in entries:
                self._take(entry)
        else:
            self._read()

    def _take(self, entry: AnyEntry) -> None:
        if entry.seq <= self.seq:
            return
        self.seq = entry.seq
        if entry.parent is not None:
            self._parents[entry.seq] = entry.parent
        if isinstance(entry, Custom):
            self._take_custom(entry)
        elif isinstance(entry, Message):
            self._messages[entry.id] = entry
            self._said_at.add(entry.seq)
            if (kept := kept_of(entry, FRAMEWORK)) is not None:
                name = cast("dict[str, Any]", kept["item"]).get("id")
                if isinstance(name, str):
                    self._ids[name] = entry.id
            else:
                self._told = entry.seq
        elif isinstance(entry, (Compaction, Uncompact, Edit)):
            self._told = entry.seq
            if isinstance(entry, Edit):
                self._edits[entry.entry] = entry
            elif isinstance(entry, Compaction):
                self._compacted[entry.seq] = self.here
            elif (key := self._compacted.get(entry.compaction)) is not None:
                self._uncompacted = entry.seq, key
        elif isinstance(entry, Head):
            self._stand_at(entry.to, by_graph=entry.id.endswith("/to"))
        elif isinstance(entry, Start) and entry.fork is not None and "thread_id" not in entry.labels:
            self._stand_at(entry.fork.seq, by_graph=False)

    def _take_custom(self, entry: Custom) -> None:
        data = entry.data
        if entry.kind == CHECKPOINT:
            key = (data["ns"], data["id"])
            self.checkpoints[key] = Stored(entry.seq, key, data["parent"], data)
            self._keys[entry.seq] = key
            self.hidden.discard(key)
            self._gone.discard(key)
            if self._newest.get(key[0], key) <= key:
                self._newest[key[0]] = key
            for kept in data["values"].values():
                self._ids.update((one["i"], one["m"]) for one in kept.get("+", ()) if one.get("i"))
            if not data["ns"]:
                self.here = key
        elif entry.kind == WRITES:
            writes = self._writes.setdefault((data["ns"], data["id"]), {})
            for index, kept in data["writes"]:
                slot = (data["task"], index)
                if data["again"] or slot not in writes:
                    writes[slot] = Write(data["path"], data["task"], index, kept)
        elif entry.kind == HIDDEN:
            self.hidden.update((ns, name) for ns, name in data["checkpoints"])
            self._find_newest()

    def _stand_at(self, node: int, *, by_graph: bool) -> None:
        """The conversation goes on from that node. Unless the graph itself did that, what it leaves is left."""
        on_path: set[Key] = set()
        self.here, is_said = None, by_graph or not self._messages
        while node:
            key = self._keys.get(node)
            is_said = is_said or node in self._said_at
            if key is not None and (is_said or _START not in self.checkpoints[key].data["values"]):
                is_said = True  # an input whose message is left behind is left with it
                on_path.add(key)
                if self.here is None and not key[0]:
                    self.here = key
            node = self._parents.get(node, 0)
        if not by_graph:
            self._gone = {key for key in self.checkpoints if key not in on_path}
            self._find_newest()

    def _find_newest(self) -> None:
        visible = sorted(key for key in self.checkpoints if key not in self.hidden and key not in self._gone)
        self._newest = {key[0]: key for key in visible}

    # ── asking ────────────────────────────────────────────────────────────────────────────────────

    def latest(self, ns: str) -> Stored | None:
        """The newest checkpoint of a namespace."""
        key = self._newest.get(ns)
        return None if key is None else self.checkpoints[key]

    def get(self, ns: str, name: str) -> Stored | None:
        """The checkpoint with that id, if it is not hidden."""
        return None if (ns, name) in self.hidden else self.checkpoints.get((ns, name))

    def newest_first(self) -> list[Stored]:
        """Every checkpoint that is not hidden."""
        keys = (key for key in self.checkpoints if key not in self.hidden)
        return [self.checkpoints[key] for key in sorted(keys, key=lambda key: key[1], reverse=True)]

    def writes(self, key: Key) -> list[Write]:
        """What was written to a checkpoint, in no order."""
        return list(self._writes.get(key, {}).values())

    # ── values ────────────────────────────────────────────────────────────────────────────────────

    def _resolved(self, ns: str, name: str, key: str) -> tuple[list[Any], Kept] | None:
        """Where a value is kept, and how; None if the checkpoint that has it is lost."""
        while (stored := self.checkpoints.get((ns, name))) is not None:
            kept = stored.data["values"][key]
            if "@" not in kept:
                return [name, key], kept
            name, key = kept["@"]
        return None

    def _elements(self, ns: str, kept: Kept) -> tuple[list[Kept], bool]:
        """The elements of a list that can be read, and whether those are all."""
        stack: list[tuple[int, list[Kept]]] = []
        base: list[Any] | None = None
        source: tuple[list[Any], Kept] | None = [], kept
        while source is not None:
            base, added = source[1]["l"], source[1]["+"]
            stack.append((base[2] if base else 0, added))
            source = self._resolved(ns, base[0], base[1]) if base else None
        elements: list[Kept] = []
        for same, added in reversed(stack):
            del elements[same:]
            elements.extend(added)
        readable = [one for one in elements if "m" not in one or one["m"] in self._messages]
        return readable, not base and len(readable) == len(elements)

    def values(self, stored: Stored, names: Iterable[str], loads: Loads) -> dict[str, Any]:
        """The values of a checkpoint's channels, made anew, but for those that are lost. They are remembered."""
        values: dict[str, Any] = {}
        seen = self._remember(stored.key)
        for key, name in zip(stored.data["values"], names, strict=True):
            source = self._resolved(*stored.key, key)
            if source is None:
                continue
            where, kept = source
            if "l" not in kept:
                seen[name] = SeenValue(where, kept, [])
                values[name] = loaded(kept, loads)
                continue
            readable, is_whole = self._elements(stored.key[0], kept)
            elements = [self._element(one, loads) for one in readable]
            seen[name] = SeenValue(where if is_whole else None, None, elements)
            values[name] = [element.value for element in elements]
        return values

    def _element(self, kept: Kept, loads: Loads) -> Element:
        return Element(self.one(kept, loads), kept)

    def one(self, kept: Kept, loads: Loads) -> Any:
        """An element, or what was written to a list."""
        if "m" not in kept:
            return [self.one(item, loads) for item in kept["w"]] if "w" in kept else loaded(kept, loads)
        message = self._said(self._messages[kept["m"]])[0]
        if "i" in kept:
            message.id = kept["i"]
        return message

    def _said(self, entry: Message) -> list[BaseMessage]:
        edit = self._edits.get(entry.seq)
        if edit is not None:
            entry = replace(entry, blocks=edit.blocks or [])
        return restored(entry, self.session.blob, edited=edit is not None)

    def told(self, stored: Stored, values: dict[str, Any], writer: ValueWriter, loads: Loads) -> None:
        """Bring what was said since by others into the list of messages: their messages, compactions, edits.

        Of a list that was damaged, the conversation still has the messages.
        """
        seen = self._remember(stored.key)
        lists = {name for name, one in seen.items() if any("m" in e.kept for e in one.elements)}
        damaged = {name for name in lists if seen[name].where is None}
        if stored.key[0] or stored.key != self.here or not lists or (self._told <= stored.seq and not damaged):
            return
        name = max(damaged or lists, key=lambda one: len(seen[one].elements))
        listed = {element.kept["m"]: element for element in seen[name].elements if "m" in element.kept}
        listed |= {
            kept["m"]: self._element(kept, loads) for kept in self._regained(stored, name) if kept["m"] not in listed
        }
        elements: list[Element] = []
        for entry in self.session.context(repair=False):
            is_ours = kept_of(entry, FRAMEWORK) is not None
            if entry.id in listed and entry.seq:
                elements.append(listed[entry.id])
            elif not is_ours or damaged:
                messages = restored(entry, self.session.blob)
                is_one = bool(entry.seq) and len(messages) == 1 and entry.id in self._messages
                elements += [Element(one, {"m": entry.id} if is_one else writer.kept(one)) for one in messages]
        seen[name] = SeenValue(None, None, elements)
        values[name] = [element.value for element in elements]

    def _regained(self, stored: Stored, name: str) -> list[Kept]:
        """The messages that a list had before a compaction which was taken back since."""
        if self._uncompacted is None or self._uncompacted[0] < stored.seq:
            return []
        ns, checkpoint = self._uncompacted[1]
        source = self._resolved(ns, checkpoint, name)
        return [] if source is None else [one for one in self._elements(ns, source[1])[0] if "m" in one]

    # ── what was handed in or out ─────────────────────────────────────────────────────────────────

    def _remember(self, key: Key) -> dict[str, SeenValue]:
        seen = self._seen.pop(key, None) or {}
        self._seen[key] = seen
        while len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]
        return seen

    def remember(self, key: Key, seen: dict[str, SeenValue]) -> None:
        """These are the values that were just put."""
        self._remember(key).update(seen)
        self.recent.clear()

    def seen(self, key: Key | None, load: Callable[[Stored], Any]) -> dict[str, SeenValue]:
        """The values of a checkpoint that a new one follows; loaded if they are not remembered."""
        stored = None if key is None else self.checkpoints.get(key)
        if stored is None:
            return {}
        if stored.key not in self._seen:
            load(stored)
        return self._seen.get(stored.key, {})

    def known(self, base: dict[str, SeenValue]) -> Callable[[BaseMessage], Kept | None]:
        """Finds how a message is kept that is somewhere in the values before, or was written just now."""
        table: dict[int, Element] | None = None

        def find(message: BaseMessage) -> Kept | None:
            nonlocal table
            element = self.recent.get(id(message))
            if element is None or element.value is not message:
                if message.id is not None:
                    return self._same(message)
                if table is None:
                    table = {id(e.value): e for seen in base.values() for e in seen.elements if "m" in e.kept}
                element = table.get(id(message))
            if element is None or element.value is not message or not element.is_untouched(but_id=True):
                return None
            assert element.fields is not None
            return element.kept if message.id == element.fields["id"] else {**element.kept, "i": message.id}

        return find

    def _same(self, message: BaseMessage) -> Kept | None:
        """How a message is kept that is there with the same id and says the same: a subgraph hands copies around."""
        entry = self._messages.get(self._ids.get(message.id or "", ""))
        messages = [] if entry is None else self._said(entry)
        if entry is None or len(messages) != 1 or type(messages[0]) is not type(message):
            return None
        kept = {"m": entry.id} if messages[0].id == message.id else {"m": entry.id, "i": message.id}
        messages[0].id = message.id
        return kept if messages[0] == message else None

    def all_visible(self) -> Iterator[Key]:
        """The keys of every checkpoint that is not hidden."""
        return (key for key in self.checkpoints if key not in self.hidden)


def is_again(writes: Iterable[tuple[str, Any]]) -> bool:
    """Whether writes replace those that are there: errors, interrupts and the like."""
    return all(channel in WRITES_IDX_MAP for channel, _ in writes)


def labelled(ids: Iterable[Any]) -> list[str]:
    """Ids of threads as texts."""
    return [str(cast("object", one)) for one in ids]
