"""The same items through our session for the OpenAI Agents SDK."""

from pathlib import Path
from typing import Any

from bench.contestants import openai_agents
from turnlog.adapters.openai_agents import TurnlogSession


class Store(openai_agents.Store):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.path = folder / "home"

    def open(self) -> Any:
        return TurnlogSession("bench", self.path)

    def durability(self) -> str:
        return "fdatasync per append"
