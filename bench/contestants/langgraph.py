"""LangGraph: what a graph with a `messages` channel stores through `SqliteSaver` per message."""

from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import create_checkpoint, empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver

from bench.contestants import sqlite_durability
from bench.work import Message

KINDS = {"user": HumanMessage, "assistant": AIMessage, "tool": ToolMessage}


class Store:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "langgraph.sqlite"
        self.thread = {"configurable": {"thread_id": "bench", "checkpoint_ns": ""}}

    async def create(self) -> None:
        self.entered = SqliteSaver.from_conn_string(str(self.path))
        self.saver = self.entered.__enter__()
        self.begin()

    def begin(self) -> None:
        self.checkpoint = empty_checkpoint()
        self.history: list[Any] = []
        self.config = self.saver.put(self.thread, self.checkpoint, {"source": "input", "step": -1}, {})

    def native(self, index: int, message: Message) -> Any:
        role, parts = message
        kind, id = KINDS[role], f"m{index}"
        if role == "tool":
            part = parts[0]
            return kind(content=part["output"], tool_call_id=part["id"], name=part["name"], id=id)
        calls = [
            {"id": part["id"], "name": part["name"], "args": part["input"]}
            for part in parts
            if part["type"] == "tool_call"
        ]
        extra = {"tool_calls": calls} if calls else {}
        return kind(content=parts[0]["text"], id=id, **extra)

    async def append(self, item: Any) -> None:
        step = len(self.history)
        self.saver.put_writes(self.config, [("messages", [item])], task_id=f"task-{step}")
        self.history.append(item)
        # What a graph with a `messages` channel stores: the channel's whole value, every step.
        checkpoint = create_checkpoint(self.checkpoint, None, step)
        last = self.checkpoint["channel_versions"].get("messages")
        versions = {"messages": self.saver.get_next_version(last, None)}
        checkpoint["channel_values"] = {"messages": self.history}
        checkpoint["channel_versions"] = versions
        self.config = self.saver.put(self.config, checkpoint, {"source": "loop", "step": step}, versions)
        self.checkpoint = checkpoint

    async def close(self) -> None:
        self.entered.__exit__(None, None, None)

    async def load(self) -> list[Any]:
        with SqliteSaver.from_conn_string(str(self.path)) as saver:
            return saver.get_tuple(self.thread).checkpoint["channel_values"]["messages"]

    async def tail(self, count: int) -> list[Any]:
        return (await self.load())[-count:]

    def strings(self, items: list[Any]) -> list[str]:
        found: list[str] = []
        for message in items:
            found.append(message.content)
            found += [call["args"]["command"] for call in getattr(message, "tool_calls", [])]
        return found

    def durability(self) -> str:
        return sqlite_durability(self.path)
