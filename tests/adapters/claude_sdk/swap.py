"""A pytest plugin: the SDK's own tests get our store where they ask for its in-memory one."""

import time
from itertools import count
from typing import Any

import claude_agent_sdk

import turnlog
from turnlog.adapters.claude_sdk import TurnlogSessionStore


class Swapped(TurnlogSessionStore):
    """With what `InMemorySessionStore` offers to tests besides."""

    def __init__(self) -> None:
        # Theirs has a time of its own for every append, however fast they come.
        super().__init__(turnlog.open("memory:", clock=count(time.time_ns() // 1_000_000).__next__))

    def get_entries(self, key: Any) -> list[Any]:
        return self._load(key) or []

    @property
    def size(self) -> int:
        return sum(info.labels.get("subpath") is None for info in self.sessions.home.sessions())

    def clear(self) -> None:
        for info in self.sessions.home.sessions():
            self.sessions.purge(info.id)


claude_agent_sdk.InMemorySessionStore = Swapped  # type: ignore[misc,assignment]
