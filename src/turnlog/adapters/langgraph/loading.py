"""Values of channels, made anew from a log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from turnlog.adapters.langgraph.handedout import SeenValue
from turnlog.adapters.langgraph.index import Stored
from turnlog.adapters.langgraph.thread import KnownThread
from turnlog.adapters.langgraph.value import Element, Loads, StoredValue, loaded


class ValueReader:
    """Makes the values of a thread anew. What it hands out is remembered."""

    def __init__(self, thread: KnownThread, loads: Loads) -> None:
        self._thread = thread
        self._index = thread.index
        self._loads = loads

    def values(self, stored: Stored, names: Iterable[str]) -> dict[str, Any]:
        """The values of a checkpoint's channels, but for those that are lost."""
        values: dict[str, Any] = {}
        seen = self._thread.handed_out.values_of(stored.key)
        for key, name in zip(stored.data["values"], names, strict=True):
            source = self._index.source_of(*stored.key, key)
            if source is None:
                continue
            where, kept = source
            if "l" not in kept:
                seen[name] = SeenValue(where, kept, [])
                values[name] = loaded(kept, self._loads)
                continue
            readable, is_whole = self._index.elements_of(stored.key[0], kept)
            elements = [self.element(element) for element in readable]
            seen[name] = SeenValue(where if is_whole else None, None, elements)
            values[name] = [element.value for element in elements]
        return values

    def element(self, kept: StoredValue) -> Element:
        """An element of a list."""
        return Element(self.load(kept), kept)

    def load(self, kept: StoredValue) -> Any:
        """An element, or what was written to a list."""
        if "m" not in kept:
            return [self.load(item) for item in kept["w"]] if "w" in kept else loaded(kept, self._loads)
        message = self._index.restored(self._index.messages[kept["m"]])[0]
        if "i" in kept:
            message.id = kept["i"]
        return message
