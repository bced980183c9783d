"""The same graph through our saver for LangGraph."""

from pathlib import Path
from typing import Any

from bench.contestants import langgraph
from turnlog.adapters.langgraph import TurnlogSaver


class Store(langgraph.Store):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.path = folder / "home"

    async def create(self) -> None:
        self.entered = self.saver = TurnlogSaver(self.path)
        self.begin()

    async def load(self) -> list[Any]:
        with TurnlogSaver(self.path) as saver:
            newest = saver.get_tuple(self.thread)
            return newest.checkpoint["channel_values"]["messages"] if newest is not None else []

    def durability(self) -> str:
        return "fdatasync per put"
