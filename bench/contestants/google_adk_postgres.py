"""Google ADK: `DatabaseSessionService.append_event` once per message."""

from pathlib import Path
from typing import Any

from google.adk.sessions.database_session_service import DatabaseSessionService

from bench.contestants import google_adk, server_of


class Store(google_adk.Store):
    def __init__(self, folder: Path) -> None:
        self.url = server_of(folder, "postgresql+asyncpg")
        self.key = {"app_name": "bench", "user_id": "bench", "session_id": "bench"}

    def open(self) -> Any:
        return DatabaseSessionService(self.url)

    def durability(self) -> str:
        return "commit per message (default)"
