"""Values of channels, made anew from a log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from turnlog.adapters.langgraph.handedout import SeenValue
from turnlog.adapters.langgraph.index import Stored
from turnlog.adapters.langgraph.thread import KnownThread
from turnlog.adapters.langgraph.value import Element, Loads, StoredValue, loaded


class LoadedValue(NamedTuple):
    """The value of a channel, made anew, and what to remember of it."""

    value: Any
    seen: SeenValue


class ValueReader:
    """Makes the values of a thread anew."""

    def __init__(self, thread: KnownThread, loads: Loads) -> None:
        self._thread = thread
        self._index = thread.index
        self._loads = loads

    def values(self, stored: Stored, names: Iterable[str]) -> dict[str, Any]:
        """The values of a checkpoint's channels, but for those that are lost. They are remembered as handed out."""
        values: dict[str, Any] = {}
        seen = self._thread.handed_out.values_of(stored.key)
        for key, name in zip(stored.data["values"], names, strict=True):
            value = self.value(stored, key)
            if value is not None:
                values[name], seen[name] = value
        return values

    def value(self, stored: Stored, key: str) -> LoadedValue | None:
        """One value of a checkpoint; None if it is lost."""
        source = self._index.source_of(*stored.key, key)
        if source is None:
            return None
        where, kept = source
        if "l" not in kept:
            return LoadedValue(loaded(kept, self._loads), SeenValue(where, kept, []))
        readable, is_whole = self._index.elements_of(stored.key[0], kept)
        elements = [self.element(element) for element in readable]
        seen = SeenValue(where if is_whole else None, None, elements)
        return LoadedValue([element.value for element in elements], seen)

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
