"""The same service by hand: as many sessions, threads and statements, with psycopg and nothing of Turnlog."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import psycopg

TURNS = 3
"""Messages of a session."""
_THREADS = 8
"""As many as a home has."""
_TABLE = """
create schema bare; grant usage on schema bare to public;
create table bare.line (tenant text, id text, seq int, line bytea, primary key (id, seq));
create index on bare.line (tenant, id); grant select, insert on bare.line to public;
"""
_WHOSE = "with whose as (select set_config('bare.tenant', %s, true))"
_ADD = f"{_WHOSE} insert into bare.line select %s, %s, %s, %s from whose"
_LIST = f"{_WHOSE} select line.* from bare.line, whose where tenant = %s order by id desc limit 10"
_READ = f"{_WHOSE} select line.* from bare.line, whose where tenant = %s and id = %s order by seq"


def prepare(database: str) -> None:
    """Make its table, as the owner."""
    with psycopg.connect(database) as owner:
        owner.execute(_TABLE)


class BareService:
    """Each statement is one round trip and one transaction, in a thread."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="bare")
        self._mine = threading.local()

    async def session(self, name: str, id: str) -> None:
        """What a session of the other kind does: begun, appended to, listed, read, and what came back looked at."""
        await self._ask(_ADD, name, name, id, 0, _line("session", name))
        for turn in range(TURNS):
            await self._ask(_ADD, name, name, id, turn + 1, _line("message", f"{name}|{id}|{turn}"))
        assert {row[0] for row in await self._ask(_LIST, name, name)} == {name}
        assert len(await self._ask(_READ, name, name, id)) == TURNS + 1

    async def _ask(self, query: str, *values: Any) -> list[Any]:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._do, query, values)

    def _do(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        connection = getattr(self._mine, "connection", None)
        try:
            if connection is None or connection.closed:
                connection = psycopg.connect(self._location, autocommit=True, prepare_threshold=None)
                self._mine.connection = connection
            found = connection.execute(query.encode(), values)
        except psycopg.OperationalError:
            time.sleep(0.1)  # whoever asks a server again that is away, does it slowly
            raise
        return [(row[0], msgspec.json.decode(row[3])) for row in found] if found.description else []


def _line(kind: str, text: str) -> bytes:
    return msgspec.json.encode({"type": kind, "blocks": [{"type": "text", "text": text}]})
