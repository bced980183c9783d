"""OpenAI Agents SDK: `SQLiteSession.add_items` once per message."""

import json
from pathlib import Path
from typing import Any

from agents import SQLiteSession

from bench.contestants import sqlite_durability
from bench.work import Message


class Store:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "agents.sqlite"
        self.sizes: list[int] = []

    def open(self) -> Any:
        return SQLiteSession("bench", self.path)

    async def create(self) -> None:
        self.session = self.open()

    def native(self, index: int, message: Message) -> Any:
        role, parts = message
        return [_item(index, role, part) for part in parts]

    async def append(self, item: Any) -> None:
        await self.session.add_items(item)
        self.sizes.append(len(item))

    async def close(self) -> None:
        self.session.close()

    async def load(self) -> list[Any]:
        session = self.open()
        try:
            return await session.get_items()
        finally:
            session.close()

    async def tail(self, count: int) -> list[Any]:
        # Its unit is the item, and an assistant message with a call is two of them.
        session = self.open()
        try:
            return await session.get_items(limit=sum(self.sizes[-count:]))
        finally:
            session.close()

    def strings(self, items: list[Any]) -> list[str]:
        return [_string(item) for item in items]

    def durability(self) -> str:
        return sqlite_durability(self.path)


def _item(index: int, role: str, part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] == "tool_call":
        return {
            "type": "function_call",
            "id": f"fc_{index}",
            "call_id": part["id"],
            "name": part["name"],
            "arguments": json.dumps(part["input"]),
            "status": "completed",
        }
    if part["type"] == "tool_result":
        return {
            "type": "function_call_output",
            "call_id": part["id"],
            "output": part["output"],
        }
    if role == "user":
        return {"role": "user", "content": part["text"]}
    text = {"type": "output_text", "text": part["text"], "annotations": []}
    return {
        "type": "message",
        "id": f"msg_{index}",
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }


def _string(item: dict[str, Any]) -> str:
    if item.get("type") == "function_call":
        return json.loads(item["arguments"])["command"]
    if item.get("type") == "function_call_output":
        return item["output"]
    return item["content"] if item["role"] == "user" else item["content"][0]["text"]
