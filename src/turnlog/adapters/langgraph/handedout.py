"""The objects that were handed in or out: what is still the same one is not stored again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from turnlog.adapters.langgraph.index import Key, Stored, ThreadIndex
from turnlog.adapters.langgraph.value import Element, StoredValue

_REMEMBERED = 4
"""Of so many checkpoints the objects are remembered."""


class SeenValue(NamedTuple):
    """The value of a channel that was handed in or out: where it is stored, and how."""

    where: list[Any] | None
    """None for a list that no checkpoint has: it was changed by others, or a part of it was lost."""
    kept: StoredValue | None
    elements: list[Element]


class HandedOut:
    """The values of the newest checkpoints as objects of the graph."""

    def __init__(self, index: ThreadIndex) -> None:
        self._index = index
        self._seen: dict[Key, dict[str, SeenValue]] = {}
        self.written_elements: dict[int, Element] = {}
        """Messages that were written and are in no list yet, by their identity."""

    def values_of(self, key: Key) -> dict[str, SeenValue]:
        """The remembered values of a checkpoint by channel, to read and to add to."""
        seen = self._seen.pop(key, None) or {}
        self._seen[key] = seen
        while len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]
        return seen

    def remember(self, key: Key, seen: dict[str, SeenValue]) -> None:
        """Remember the values of a checkpoint that was just put."""
        self.values_of(key).update(seen)
        self.written_elements.clear()

    def values_before(self, key: Key | None, load: Callable[[Stored], None]) -> dict[str, SeenValue]:
        """The values of a checkpoint that a new one follows; loaded if they are not remembered."""
        stored = None if key is None else self._index.checkpoints.get(key)
        if stored is not None and stored.key not in self._seen:
            load(stored)
        return {} if key is None else self._seen.get(key, {})

    def finder(self, base: dict[str, SeenValue]) -> Callable[[BaseMessage], StoredValue | None]:
        """Return a function that finds the reference to a message in the values before, or written just now."""
        table: dict[int, Element] | None = None

        def find(message: BaseMessage) -> StoredValue | None:
            nonlocal table
            element = self.written_elements.get(id(message))
            if element is None or element.value is not message:
                if message.id is not None:
                    return self._find_equal(message)
                if table is None:
                    table = {id(e.value): e for seen in base.values() for e in seen.elements if "m" in e.kept}
                element = table.get(id(message))
            if element is None or element.value is not message or not element.is_untouched(but_id=True):
                return None
            assert element.fields is not None
            if message.id == element.fields["id"]:
                return element.kept
            renamed: StoredValue = {**element.kept, "i": message.id}
            return renamed

        return find

    def _find_equal(self, message: BaseMessage) -> StoredValue | None:
        """The reference to a message with the same id that says the same: a subgraph hands copies around."""
        entry = self._index.find_message(message.id or "")
        messages = [] if entry is None else self._index.restored(entry)
        if entry is None or len(messages) != 1 or type(messages[0]) is not type(message):
            return None
        kept: StoredValue = {"m": entry.id} if messages[0].id == message.id else {"m": entry.id, "i": message.id}
        messages[0].id = message.id
        return kept if messages[0] == message else None
