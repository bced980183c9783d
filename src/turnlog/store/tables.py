"""What a store that lies in a database lets others do there: keep tables of their own beside the logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable


class TableConnection(Protocol):
    """A connection of one's own, for one thread at a time. What goes wrong is an error of ours."""

    tenant: int

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The answer to a question."""
        ...

    def run(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """The same with many values, and no answer."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """All of it or nothing."""
        ...

    def lock(self, waiting: Callable[[], None] | None = None) -> AbstractContextManager[None]:
        """Nobody else of this tenant writes these tables inside. `waiting` is told while somebody does."""
        ...

    def close(self) -> None:
        """Give it back."""
        ...


@runtime_checkable
class KeepsTables(Protocol):
    """A store with a database that has room for the tables of others."""

    def dedicated(self, name: str) -> TableConnection:
        """For whoever keeps tables of that name."""
        ...
