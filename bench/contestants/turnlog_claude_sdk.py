"""The same lines through our session store for the Claude Agent SDK."""

from pathlib import Path
from typing import Any

from bench.contestants import claude_sdk
from turnlog.adapters.claude_sdk import TurnlogSessionStore

KEY = {"project_key": "bench", "session_id": claude_sdk.SESSION}


class Store(claude_sdk.Store):
    def __init__(self, folder: Path) -> None:
        self.path = folder / "home"

    def open(self) -> Any:
        return TurnlogSessionStore(self.path)

    async def create(self) -> None:
        self.store = self.open()

    async def append(self, item: Any) -> None:
        await self.store.append(KEY, [item])

    async def close(self) -> None:
        await self.store.aclose()

    async def load(self) -> list[Any]:
        async with self.open() as store:
            return await store.load(KEY)

    async def tail(self, count: int) -> list[Any]:
        return (await self.load())[-count:]

    async def fill(self, count: int) -> None:
        async with self.open() as store:
            for number in range(count):
                key = {"project_key": "many", "session_id": f"s{number}"}
                await store.append(key, [self.native(0, ("user", [{"type": "text", "text": "hi"}]))])

    async def listing(self) -> list[Any]:
        async with self.open() as store:
            return await store.list_sessions("many")

    async def summaries(self) -> list[Any]:
        async with self.open() as store:
            return await store.list_session_summaries("many")
