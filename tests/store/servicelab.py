"""A service with many tenants under load: killed and started again, and asked afterwards what it lost or mixed up.

The service is a process of its own (`python -m tests.store.servicelab …`): one event loop, one home, a task for each
session, and a heartbeat. It takes turns with the same work done by hand, so that it is seen how late the loop is
without us. What was acknowledged it tells through a pipe, so that its loop waits for no disk.
"""

import asyncio
import itertools
import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import psycopg

import turnlog
from tests.pgbouncer import Bouncer
from tests.pgserver import Server
from tests.store.bareservice import TURNS, BareService, prepare
from tests.store.heart import Heart
from turnlog import aio

ROOT = Path(__file__).parents[2]
Work = Callable[[str, str], Awaitable[None]]
"""Something that is done with a session: whose, and its id."""


class Load(msgspec.Struct):
    """What a service is told."""

    location: str
    tenants: int
    sessions: int
    run: int


async def serve(load: Load) -> None:
    """Until it is killed: every session appends, reads and lists, as its tenant; then as many do the same by hand."""
    heart = Heart("turnlog")
    numbers = itertools.count()

    async def ours(home: aio.Home, name: str, id: str) -> None:
        tenant = await home.tenant(name)
        made = await tenant.create(id=id, title=name)
        for turn in range(TURNS):
            text = f"{name}|{made.id}|{turn}"
            try:
                await made.user(text)
            except turnlog.Unavailable:
                continue  # the server is away: nobody was told that it is there
            _tell(text)
        rows = await tenant.sessions(limit=10)
        said = [message.blocks[0].text for message in await made.context()]
        strange = {row.title for row in rows} - {name} or [one for one in said if one.split("|")[0] != name]
        if strange:
            _tell(f"LEAK {name} saw {strange}")
        await tenant.close()

    async def insist(work: Work) -> None:
        """One session, of another tenant each time; where the server was away in the middle of it, another one."""
        while True:
            number = next(numbers)
            try:
                return await work(f"t{number % load.tenants}", f"s{load.run}-{number}")
            except (turnlog.Unavailable, turnlog.NotFound, psycopg.OperationalError):
                await asyncio.sleep(0.1)

    async def report() -> None:
        while True:
            await asyncio.sleep(0.2)
            _tell(f"HEART {json.dumps(heart.told())}")

    async with aio.open(load.location, checkpoints=False) as home:
        bare = BareService(load.location.partition("?")[0])
        kinds: dict[str, Work] = {"turnlog": partial(ours, home), "bare": bare.session}
        beside = [asyncio.create_task(heart.beat()), asyncio.create_task(report())]
        for heart.kind in itertools.cycle(kinds):
            await asyncio.gather(*(insist(kinds[heart.kind]) for _ in range(load.sessions)))
            assert not any(task.done() for task in beside)


def _tell(line: str) -> None:
    os.write(1, f"{line}\n".encode())


class Service:
    """One, in a process of its own."""

    def __init__(self, location: str, *, tenants: int, sessions: int) -> None:
        self._load = Load(location, tenants, sessions, 0)
        self.acks: list[str] = []
        self._hearts: dict[int, dict[str, dict[str, float]]] = {}
        self.start()

    def start(self) -> None:
        self._load.run += 1
        command = [sys.executable, "-m", "tests.store.servicelab", msgspec.json.encode(self._load).decode()]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self._listener = threading.Thread(target=self._listen, args=(self._load.run, self.process.stdout))
        self._listener.start()

    def _listen(self, run: int, told: Iterable[str]) -> None:
        for line in told:
            if line.startswith("HEART "):
                self._hearts[run] = json.loads(line[6:])
            elif line.endswith("\n"):
                self.acks.append(line[:-1])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._listener.join()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def until(self, count: int) -> None:
        """Wait until so much was acknowledged."""
        while len(self.acks) < count:
            assert self.process.poll() is None, "the service ended by itself"
            time.sleep(0.02)

    def hearts(self) -> dict[str, dict[str, float]]:
        """Over all of its lives."""
        found: dict[str, dict[str, float]] = {}
        for kind, facts in itertools.chain.from_iterable(life.items() for life in self._hearts.values()):
            sums = found.setdefault(kind, {})
            for name, value in facts.items():
                sums[name] = max(sums.get(name, 0), value) if name.startswith("worst") else sums.get(name, 0) + value
        return found


class Lived(NamedTuple):
    """What became of a service."""

    found: "Found"
    hearts: dict[str, dict[str, float]]
    """Of Turnlog, of the same by hand, and where threads were when a beat was late."""
    connections: int
    """Of the server, at the end."""


class Found(NamedTuple):
    """What is in the database."""

    acknowledged: int
    tenants: int
    entries: int


def examine(database: str, told: list[str]) -> Found:
    """Raise if anything was lost, doubled, or is another tenant's. Asked as somebody who sees all rows."""
    assert [line for line in told if line.startswith("LEAK")] == []
    query = (
        "select t.name, s.id, e.line from turnlog.entry as e join turnlog.session as s on s.num = e.session "
        "join turnlog.tenant as t on t.num = e.tenant and t.num = s.tenant "
        "where position('\"message\"'::bytea in e.line) > 0"
    )
    seen: dict[str, int] = {}
    names: set[str] = set()
    with psycopg.connect(database) as admin:
        for name, session, line in admin.execute(query):
            entry: dict[str, Any] = json.loads(bytes(line))
            text = entry["blocks"][0]["text"]
            assert text.split("|")[:2] == [name, bytes(session).decode()], (name, session, text)
            seen[text] = seen.get(text, 0) + 1
            names.add(name)
    assert [text for text, times in seen.items() if times > 1] == []
    assert [text for text in told if text not in seen] == []
    return Found(len(told), len(names), len(seen))


def founded(server: Server) -> tuple[str, str]:
    """A new database for a service, and a role that may use it."""
    database, role = server.database(f"service-{uuid.uuid4()}"), server.role()
    turnlog.open(database).close()
    server.grant(database, role)
    prepare(database)
    return database, role


def lived(server: Server, *, pooled: bool, tenants: int, sessions: int, seconds: float) -> Lived:
    """A service in a new database of that server: killed and started again, then its server, then looked at."""
    database, role = founded(server)
    bouncer = Bouncer(server, role, size=20) if pooled else None
    location = (database if bouncer is None else bouncer.before(database)).replace("postgres@", f"{role}@")
    service = Service(f"{location}?connections=20", tenants=tenants, sessions=sessions)
    try:
        service.until(1)
        for harm in (service.kill, server.kill):
            time.sleep(seconds / 3)
            harm()
            (service.start if harm == service.kill else server.start)()
            service.until(len(service.acks) + sessions)
        time.sleep(seconds / 3)
        with psycopg.connect(server.url) as admin:
            query = "select count(*) from pg_stat_activity where usename = %s"
            [(connections,)] = admin.execute(query, (role,)).fetchall()
    finally:
        service.kill()
        if bouncer is not None:
            bouncer.kill()
    return Lived(examine(database, service.acks), service.hearts(), connections)


if __name__ == "__main__":
    asyncio.run(serve(msgspec.json.decode(sys.argv[1], type=Load)))
