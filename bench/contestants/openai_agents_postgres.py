"""OpenAI Agents SDK: `SQLAlchemySession.add_items` once per message."""

from pathlib import Path
from typing import Any

from agents.extensions.memory import SQLAlchemySession

from bench.contestants import openai_agents, server_of


class Store(openai_agents.Store):
    def __init__(self, folder: Path) -> None:
        self.url = server_of(folder, "postgresql+asyncpg")
        self.sizes: list[int] = []

    def _open(self) -> SQLAlchemySession:
        return SQLAlchemySession.from_url("bench", url=self.url, create_tables=True)

    async def create(self) -> None:
        self.session = self._open()

    async def close(self) -> None:
        await self.session.engine.dispose()

    async def load(self) -> list[Any]:
        return await self._items(None)

    async def tail(self, count: int) -> list[Any]:
        # Its unit is the item, and an assistant message with a call is two of them.
        return await self._items(sum(self.sizes[-count:]))

    async def _items(self, limit: int | None) -> list[Any]:
        session = self._open()
        try:
            return await session.get_items(limit=limit)
        finally:
            await session.engine.dispose()

    def durability(self) -> str:
        return "commit per message (default)"
