"""A pytest plugin: LangGraph's own graph tests get our saver where they ask for one of SQLite; no others are run."""

from contextlib import asynccontextmanager, contextmanager
from typing import Any

import langgraph.checkpoint.sqlite
import langgraph.checkpoint.sqlite.aio

from turnlog.adapters.langgraph import TurnlogSaver


class Swapped(TurnlogSaver):
    """Made as `SqliteSaver` is."""

    @classmethod
    @contextmanager
    def from_conn_string(cls, _: str) -> Any:
        with cls("memory:") as saver:
            yield saver


class SwappedAsync(TurnlogSaver):
    """Made as `AsyncSqliteSaver` is."""

    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, _: str) -> Any:
        async with cls("memory:") as saver:
            yield saver


langgraph.checkpoint.sqlite.SqliteSaver = Swapped  # type: ignore[misc,assignment]
langgraph.checkpoint.sqlite.aio.AsyncSqliteSaver = SwappedAsync  # type: ignore[misc,assignment]


def pytest_collection_modifyitems(items: list[Any]) -> None:
    asked = {"sync_checkpointer": ("sqlite", "sqlite_aes"), "async_checkpointer": ("sqlite_aio",)}
    items[:] = [
        item
        for item in items
        if any(getattr(item, "callspec", None) and item.callspec.params.get(name) in of for name, of in asked.items())
    ]
