"""llm: `LogStore.append` once per message."""

from pathlib import Path
from typing import Any

from llm.logs import LogStore
from llm.parts import Message as LLMMessage
from llm.parts import TextPart, ToolCallPart, ToolResultPart
from sqlite_utils import Database

from bench.contestants import sqlite_durability
from bench.work import Message


class Store:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "logs.db"

    async def create(self) -> None:
        self.db = Database(self.path)
        self.store = LogStore(self.db)
        self.thread = self.store.create_thread(name="bench")

    def native(self, index: int, message: Message) -> Any:
        role, parts = message
        return LLMMessage(role=role, parts=[_part(part) for part in parts])

    async def append(self, item: Any) -> None:
        self.store.append(self.thread, [item])

    async def close(self) -> None:
        self.db.close()

    async def load(self) -> list[Any]:
        db = Database(self.path)
        try:
            return LogStore(db).thread_messages(self.thread)
        finally:
            db.close()

    async def tail(self, count: int) -> list[Any]:
        return (await self.load())[-count:]

    def strings(self, items: list[Any]) -> list[str]:
        return [_string(part) for message in items for part in message.parts]

    def durability(self) -> str:
        return sqlite_durability(self.path)


def _part(part: dict[str, Any]) -> Any:
    if part["type"] == "text":
        return TextPart(text=part["text"])
    if part["type"] == "tool_call":
        return ToolCallPart(name=part["name"], arguments=part["input"], tool_call_id=part["id"])
    return ToolResultPart(name=part["name"], output=part["output"], tool_call_id=part["id"])


def _string(part: Any) -> str:
    if isinstance(part, ToolCallPart):
        return part.arguments["command"]
    return part.output if isinstance(part, ToolResultPart) else part.text
