"""The same messages through our session manager for Strands Agents."""

from typing import Any

from bench.contestants import strands
from turnlog.adapters.strands import TurnlogSessionManager


class Store(strands.Store):
    def open(self) -> Any:
        return TurnlogSessionManager("bench", self.folder).session_repository

    def durability(self) -> str:
        return "fdatasync per message"
