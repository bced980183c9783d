"""The stores under test: one module each, with a class `Store`, used as its documentation does.

Where a choice is open the peer gets the benefit: native messages are built before the clock
starts, and nothing that a peer does on top of its store is counted.
"""

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bench.work import Message


@dataclass(frozen=True)
class Contestant:
    """What the table says of a store. Known without importing it."""

    title: str
    requires: tuple[str, ...] = ()
    can_tail: bool = True


# LangGraph last: the gigabytes it leaves to write back must not slow anybody else.
CONTESTANTS = {
    "raw": Contestant("raw write + fdatasync"),
    "turnlog": Contestant("turnlog", ("turnlog",)),
    "openai_agents": Contestant("openai-agents SQLiteSession", ("openai-agents",)),
    "turnlog_openai_agents": Contestant("turnlog for OpenAI Agents", ("turnlog", "openai-agents")),
    "google_adk": Contestant("google-adk SqliteSessionService", ("google-adk",)),
    "turnlog_google_adk": Contestant("turnlog for Google ADK", ("turnlog", "google-adk")),
    "strands": Contestant("strands FileSessionManager", ("strands-agents",)),
    "turnlog_strands": Contestant("turnlog for Strands Agents", ("turnlog", "strands-agents")),
    "llm": Contestant("llm LogStore", ("llm",), can_tail=False),
    "turnlog_langgraph": Contestant("turnlog for LangGraph", ("turnlog", "langgraph"), can_tail=False),
    "langgraph": Contestant(
        "langgraph SqliteSaver",
        ("langgraph", "langgraph-checkpoint-sqlite"),
        can_tail=False,
    ),
}


# The same on one PostgreSQL server.
ON_SERVER = {
    "raw_postgres": Contestant("psycopg INSERT, committed", ("psycopg",)),
    "turnlog_postgres": Contestant("turnlog on PostgreSQL", ("turnlog",)),
    "openai_agents_postgres": Contestant("openai-agents SQLAlchemySession", ("openai-agents", "sqlalchemy")),
    "google_adk_postgres": Contestant("google-adk DatabaseSessionService", ("google-adk", "sqlalchemy")),
    "langgraph_postgres": Contestant(
        "langgraph PostgresSaver", ("langgraph", "langgraph-checkpoint-postgres"), can_tail=False
    ),
}


def server_of(folder: Path, scheme: str = "postgresql") -> str:
    """The database for a contestant that is measured in that folder."""
    return (folder / "server").read_text().replace("postgresql", scheme, 1)


class Store(Protocol):
    """Takes one session, message by message, and gives it back.

    Coroutines where any peer needs one, so that everybody pays for the same loop.
    """

    def __init__(self, folder: Path) -> None: ...
    async def create(self) -> None: ...
    def native(self, index: int, message: Message) -> Any: ...
    async def append(self, item: Any) -> None: ...
    async def close(self) -> None: ...

    async def load(self) -> list[Any]:
        """All messages, through a fresh handle."""
        ...

    async def tail(self, count: int) -> list[Any]:
        """The last `count` messages, through a fresh handle."""
        ...

    def strings(self, items: list[Any]) -> list[str]:
        """What `work.strings` says of the same messages, taken from what was loaded."""
        ...

    def durability(self) -> str: ...


def sqlite_durability(path: Path) -> str:
    """Journal mode and sync level, for peers that leave `synchronous` alone as all of ours do."""
    connection = sqlite3.connect(path)
    try:
        (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
        (sync,) = connection.execute("PRAGMA synchronous").fetchone()
    finally:
        connection.close()
    return f"sqlite {journal}, synchronous={('OFF', 'NORMAL', 'FULL', 'EXTRA')[sync]} (default)"
