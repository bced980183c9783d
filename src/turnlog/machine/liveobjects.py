"""A group of objects, for as long as each is alive; threads may add to it and iterate it at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

_T = TypeVar("_T")


class LiveObjects(Generic[_T]):
    """Like a `WeakSet`, which raises if another thread adds to it during an iteration. Objects count by identity."""

    def __init__(self) -> None:
        self._by_id: WeakValueDictionary[int, _T] = WeakValueDictionary()

    def add(self, item: _T) -> None:
        """Add an object, without keeping it alive."""
        self._by_id[id(item)] = item

    def __iter__(self) -> Iterator[_T]:
        """The objects that are alive now."""
        references = self._by_id.valuerefs()  # copied in one step, unlike `values`
        return iter([item for reference in references if (item := reference()) is not None])
