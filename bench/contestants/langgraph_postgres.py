"""LangGraph: what a graph with a `messages` channel stores through `PostgresSaver` per message."""

from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver

from bench.contestants import langgraph, server_of


class Store(langgraph.Store):
    def __init__(self, folder: Path) -> None:
        self.url = server_of(folder)
        self.thread = {"configurable": {"thread_id": "bench", "checkpoint_ns": ""}}

    async def create(self) -> None:
        self.entered = PostgresSaver.from_conn_string(self.url)
        self.saver = self.entered.__enter__()
        self.saver.setup()
        self.checkpoint = empty_checkpoint()
        self.history: list[Any] = []
        self.config = self.saver.put(self.thread, self.checkpoint, {"source": "input", "step": -1}, {})

    async def load(self) -> list[Any]:
        with PostgresSaver.from_conn_string(self.url) as saver:
            return saver.get_tuple(self.thread).checkpoint["channel_values"]["messages"]

    def durability(self) -> str:
        return "commit per message (default)"
