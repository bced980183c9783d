"""The values that were used last, up to a number."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

from turnlog.store.forked import renew_after_fork

_K = TypeVar("_K")
_V = TypeVar("_V")


class Recent(Generic[_K, _V]):
    """The values that were used last, up to a number. Safe to use from many threads."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[_K, _V] = OrderedDict()
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """See `renew_after_fork`: a thread of the parent may hold the old one."""
        self._mutex = threading.Lock()

    def get(self, key: _K) -> _V | None:
        """The value of a key, which is now the one used last; None if it is not here any more."""
        with self._mutex:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: _K, value: _V) -> None:
        """Add a value, or replace the one of that key."""
        with self._mutex:
            self._values[key] = value
            self._trim(key)

    def pop(self, key: _K) -> _V | None:
        """Take a value out; None if it is not here."""
        with self._mutex:
            return self._values.pop(key, None)

    def pop_all(self) -> list[_V]:
        """Take every value out."""
        with self._mutex:
            values, self._values = list(self._values.values()), OrderedDict()
            return values

    def _trim(self, used: _K) -> None:
        self._values.move_to_end(used)
        while len(self._values) > self._limit:
            self._values.popitem(last=False)
