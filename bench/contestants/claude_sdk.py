"""The lines of Claude Code, one write and one sync each: what a store for its SDK is measured against."""

from typing import Any
from uuid import UUID

from bench.contestants import raw
from bench.work import Message, Part

SESSION = str(UUID(int=7))


class Store(raw.Store):
    def native(self, index: int, message: Message) -> Any:
        role, parts = message
        said = {"role": "assistant" if role == "assistant" else "user", "content": [_part(part) for part in parts]}
        return {
            "parentUuid": None if index == 0 else str(UUID(int=index)),
            "isSidechain": False,
            "userType": "external",
            "cwd": "/work",
            "sessionId": SESSION,
            "version": "2.1.0",
            "type": said["role"],
            "message": said,
            "uuid": str(UUID(int=index + 1)),
            "timestamp": f"2026-01-01T{index // 3600:02}:{index // 60 % 60:02}:{index % 60:02}.000Z",
        }

    def strings(self, items: list[Any]) -> list[str]:
        return [_string(part) for item in items for part in item["message"]["content"]]


def _part(part: Part) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    if part["type"] == "tool_call":
        return {"type": "tool_use", "id": part["id"], "name": part["name"], "input": part["input"]}
    return {"type": "tool_result", "tool_use_id": part["id"], "content": part["output"]}


def _string(part: dict[str, Any]) -> str:
    if part["type"] == "tool_use":
        return part["input"]["command"]
    return part["text"] if part["type"] == "text" else part["content"]
