"""Turnlog on its PostgreSQL store, as it comes."""

from pathlib import Path

from bench.contestants import server_of, turnlog


class Store(turnlog.Store):
    def __init__(self, folder: Path) -> None:
        self.folder = server_of(folder)

    def durability(self) -> str:
        return "commit per message (default)"
