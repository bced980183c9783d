"""Strands Agents: `FileSessionManager.create_message` once per message."""

from pathlib import Path
from typing import Any

from strands.session.file_session_manager import FileSessionManager
from strands.types.session import SessionAgent, SessionMessage

from bench.work import Message


class Store:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "strands"
        self.count = 0

    def open(self) -> Any:
        return FileSessionManager("bench", storage_dir=str(self.folder))

    async def create(self) -> None:
        self.manager = self.open()
        agent = SessionAgent(agent_id="bench", state={}, conversation_manager_state={})
        self.manager.create_agent("bench", agent)

    def native(self, index: int, message: Message) -> Any:
        role, parts = message
        content = [_block(part) for part in parts]
        native = {"role": "assistant" if role == "assistant" else "user", "content": content}
        return SessionMessage.from_message(native, index)

    async def append(self, item: Any) -> None:
        self.manager.create_message("bench", "bench", item)
        self.count += 1

    async def close(self) -> None:
        pass

    async def load(self) -> list[Any]:
        return self.open().list_messages("bench", "bench")

    async def tail(self, count: int) -> list[Any]:
        # It counts from the front and cannot be asked how many there are; it is told.
        return self.open().list_messages("bench", "bench", limit=count, offset=max(0, self.count - count))

    def strings(self, items: list[Any]) -> list[str]:
        blocks = [block for item in items for block in item.to_message()["content"]]
        return [_string(block) for block in blocks]

    def durability(self) -> str:
        return "one file per message, atomic replace, no sync"


def _block(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return {"text": part["text"]}
    if part["type"] == "tool_call":
        use = {"toolUseId": part["id"], "name": part["name"], "input": part["input"]}
        return {"toolUse": use}
    content = [{"text": part["output"]}]
    result = {"toolUseId": part["id"], "status": "success", "content": content}
    return {"toolResult": result}


def _string(block: dict[str, Any]) -> str:
    if "toolUse" in block:
        return block["toolUse"]["input"]["command"]
    if "toolResult" in block:
        return block["toolResult"]["content"][0]["text"]
    return block["text"]
