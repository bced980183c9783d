"""Pydantic AI: all messages as one JSON file, written anew for each, as its documentation does it."""

import os
from pathlib import Path
from typing import Any

from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from bench.work import Message


class Store:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "messages.json"

    async def create(self) -> None:
        self.messages: list[Any] = []

    def native(self, index: int, message: Message) -> Any:
        role, parts = message
        made = [_part(role, part) for part in parts]
        return ModelResponse(parts=made) if role == "assistant" else ModelRequest(parts=made)

    async def append(self, item: Any) -> None:
        self.messages.append(item)
        fresh = self.path.with_suffix(".tmp")
        fresh.write_bytes(ModelMessagesTypeAdapter.dump_json(self.messages))
        os.replace(fresh, self.path)

    async def close(self) -> None:
        pass

    async def load(self) -> list[Any]:
        return ModelMessagesTypeAdapter.validate_json(self.path.read_bytes())

    async def tail(self, count: int) -> list[Any]:
        return (await self.load())[-count:]

    def strings(self, items: list[Any]) -> list[str]:
        return [_string(part) for message in items for part in message.parts]

    def durability(self) -> str:
        return "whole file per message, atomic replace, no sync"


def _part(role: str, part: dict[str, Any]) -> Any:
    if part["type"] == "tool_call":
        return ToolCallPart(tool_name=part["name"], args=part["input"], tool_call_id=part["id"])
    if part["type"] == "tool_result":
        return ToolReturnPart(tool_name=part["name"], content=part["output"], tool_call_id=part["id"])
    return TextPart(part["text"]) if role == "assistant" else UserPromptPart(part["text"])


def _string(part: Any) -> str:
    return part.args["command"] if isinstance(part, ToolCallPart) else part.content
