"""The same events through our session service for Google ADK."""

from pathlib import Path
from typing import Any

from bench.contestants import google_adk
from turnlog.adapters.adk import TurnlogSessionService


class Store(google_adk.Store):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.path = folder / "home"

    def open(self) -> Any:
        return TurnlogSessionService(self.path)

    async def shut(self, service: Any) -> None:
        await service.aclose()

    def durability(self) -> str:
        return "fdatasync per event"
