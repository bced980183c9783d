"""The floor on a server: one line of JSON, one `INSERT` that is committed at once, by psycopg."""

import json
from pathlib import Path
from typing import Any

import psycopg

from bench.contestants import raw, server_of
from bench.work import Message


class Store(raw.Store):
    def __init__(self, folder: Path) -> None:
        self.url = server_of(folder)

    def _connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url, autocommit=True, prepare_threshold=0)

    async def create(self) -> None:
        self.connection = self._connect()
        self.connection.execute("create table line (seq bigint primary key, data bytea not null)")

    def native(self, index: int, message: Message) -> Any:
        role, parts = message
        return {"seq": index, "role": role, "parts": parts}

    async def append(self, item: Any) -> None:
        data = json.dumps(item, separators=(",", ":")).encode()
        self.connection.execute("insert into line values (%s, %b)", (item["seq"], data))

    async def close(self) -> None:
        self.connection.close()

    async def load(self) -> list[Any]:
        with self._connect() as connection:
            rows = connection.execute("select data from line order by seq", binary=True).fetchall()
            return [json.loads(data) for (data,) in rows]

    async def tail(self, count: int) -> list[Any]:
        with self._connect() as connection:
            query = "select data from line order by seq desc limit %s"
            rows = connection.execute(query, (count,), binary=True).fetchall()
            return [json.loads(data) for (data,) in reversed(rows)]

    def durability(self) -> str:
        return "commit per message"
