"""The floor: one line of JSON, one write, one sync per message."""

import json
import os
from pathlib import Path
from typing import Any

from bench.work import Message, strings


class Store:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "raw.jsonl"

    async def create(self) -> None:
        self.fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def native(self, index: int, message: Message) -> Any:
        role, parts = message
        return {"seq": index, "role": role, "parts": parts}

    async def append(self, item: Any) -> None:
        os.write(self.fd, json.dumps(item, separators=(",", ":")).encode() + b"\n")
        os.fdatasync(self.fd)

    async def close(self) -> None:
        os.close(self.fd)

    async def load(self) -> list[Any]:
        with self.path.open("rb") as file:
            return [json.loads(line) for line in file]

    async def tail(self, count: int) -> list[Any]:
        with self.path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            size = 64 * 1024
            while True:
                start = max(0, end - size)
                file.seek(start)
                lines = file.read().splitlines()
                if start == 0 or len(lines) > count:
                    return [json.loads(line) for line in lines[-count:]]
                size *= 2

    def strings(self, items: list[Any]) -> list[str]:
        return [string for item in items for string in strings(item["parts"])]

    def durability(self) -> str:
        return "fdatasync per message"
