"""The same messages through our conversation store for Pydantic AI."""

from pathlib import Path
from typing import Any

from pydantic_ai.conversation import Conversation

from bench.contestants import pydantic_ai
from turnlog.adapters.pydantic_ai import TurnlogConversationStore


class Store(pydantic_ai.Store):
    def __init__(self, folder: Path) -> None:
        self.path = folder / "home"

    def open(self) -> Any:
        return TurnlogConversationStore(self.path)

    async def create(self) -> None:
        self.store = self.open()
        self.conversation = Conversation(conversation_id="bench")

    async def append(self, item: Any) -> None:
        self.conversation.messages.append(item)
        await self.store.save(self.conversation)

    async def close(self) -> None:
        await self.store.aclose()

    async def load(self) -> list[Any]:
        return await self._messages(None)

    async def tail(self, count: int) -> list[Any]:
        return await self._messages(count)

    async def _messages(self, limit: int | None) -> list[Any]:
        async with self.open() as store:
            return (await store.load("bench", limit=limit)).messages

    def durability(self) -> str:
        return "fdatasync per save"
