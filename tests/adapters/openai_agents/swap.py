"""A pytest plugin: the SDK's own tests get our session where they ask for its SQLite one."""

import os
from typing import Any

import agents
import agents.memory

from turnlog.adapters.openai_agents import TurnlogSession


class Swapped(TurnlogSession):
    """Takes the arguments of `SQLiteSession`; a database is a home beside it."""

    def __init__(self, session_id: str, db_path: Any = ":memory:", *_: Any, session_settings: Any = None) -> None:
        home = "memory:" if str(db_path) == ":memory:" else f"{os.fspath(db_path)}.home"
        super().__init__(session_id, home, session_settings)


agents.SQLiteSession = agents.memory.SQLiteSession = Swapped  # type: ignore[misc,assignment]
