"""Turnlog on its file store, as it comes."""

from pathlib import Path
from typing import Any

import turnlog
from bench.work import Message


class Store:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "home"

    async def create(self) -> None:
        self.home = turnlog.open(self.folder)
        self.session = self.home.create(workspace=".", agent="bench")
        self.id = self.session.id

    def native(self, index: int, message: Message) -> Any:
        role, parts = message
        if role == "user":
            return self.session.user, (parts[0]["text"],), {}
        if role == "tool":
            return self.session.tool_result, (parts[0]["id"], parts[0]["output"]), {}
        blocks = [_block(part) for part in parts]
        usage = turnlog.Usage(input_tokens=300, output_tokens=80)
        return self.session.assistant, (blocks,), {"model": "m", "usage": usage}

    async def append(self, item: Any) -> None:
        method, args, kwargs = item
        method(*args, **kwargs)

    async def close(self) -> None:
        self.home.close()

    async def load(self) -> list[Any]:
        with turnlog.open(self.folder) as home:
            return list(home.resume(self.id).messages())

    async def tail(self, count: int) -> list[Any]:
        with turnlog.open(self.folder) as home:
            return list(home.resume(self.id).messages(last=count))

    def strings(self, items: list[Any]) -> list[str]:
        return [_string(block) for message in items for block in message.blocks]

    def durability(self) -> str:
        return "fdatasync per message (default)"


def _block(part: dict[str, Any]) -> Any:
    if part["type"] == "text":
        return turnlog.Text(part["text"])
    return turnlog.ToolCall(id=part["id"], name=part["name"], input=part["input"])


def _string(block: Any) -> str:
    if isinstance(block, turnlog.Text):
        return block.text
    if isinstance(block, turnlog.ToolCall):
        return block.input["command"]
    content = block.content
    return content if isinstance(content, str) else "".join(part.text for part in content)
