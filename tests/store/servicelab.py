"""A service with many tenants under load: killed and started again, and asked afterwards what it lost or mixed up.

The service is a process of its own (`python -m tests.store.servicelab …`): one event loop, one home, a task for each
session, and a heartbeat. When the heart is late, a thread looks at what the loop is doing: that is ours if it is in
code of Turnlog. What was acknowledged is written down outside of the database.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import psycopg

import turnlog
from tests.pgbouncer import Bouncer
from tests.pgserver import Server
from turnlog import aio

ROOT = Path(__file__).parents[2]
OURS = str(Path(turnlog.__file__).parent)
BEAT_S, LATE_S = 0.005, 0.05


class Load(msgspec.Struct):
    """What a service is told."""

    location: str
    out: str
    tenants: int
    sessions: int
    run: int


class Heart:
    """Beats on the loop; a thread looks at the loop when it does not."""

    def __init__(self) -> None:
        self.beats = self.late = self.late_ours = 0
        self.worst_ms = self.worst_ours_ms = 0.0
        self._at = time.monotonic()
        self._loop = threading.get_ident()
        self._is_ours = False

    async def beat(self) -> None:
        threading.Thread(target=self._look, daemon=True).start()
        while True:
            await asyncio.sleep(BEAT_S)
            now = time.monotonic()
            late, self._at = now - self._at - BEAT_S, now
            self.beats += 1
            self.worst_ms = max(self.worst_ms, late * 1000)
            if late > LATE_S:
                self.late += 1
                if self._is_ours:
                    self.late_ours += 1
                    self.worst_ours_ms = max(self.worst_ours_ms, late * 1000)
            self._is_ours = False

    def _look(self) -> None:
        while True:
            time.sleep(LATE_S / 5)
            if time.monotonic() - self._at > LATE_S / 2:
                frame = sys._current_frames().get(self._loop)
                while frame is not None and not self._is_ours:
                    self._is_ours = frame.f_code.co_filename.startswith(OURS)
                    frame = frame.f_back

    def told(self) -> dict[str, float]:
        return {
            "beats": self.beats, "late": self.late, "late_ours": self.late_ours, "worst_ms": round(self.worst_ms),
            "worst_ours_ms": round(self.worst_ours_ms),
        }  # fmt: skip


async def serve(load: Load) -> None:
    """Until it is killed: every session appends, reads and lists, as its tenant."""
    acks = os.open(f"{load.out}/acks", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    heart = Heart()
    async with aio.open(load.location, checkpoints=False) as home:

        async def session(number: int) -> None:
            step = 0
            while True:
                name = f"t{(number + step * load.sessions) % load.tenants}"
                tenant = await home.tenant(name)
                made = await tenant.create(id=f"s{load.run}-{number}-{step}", title=name)
                for turn in range(3):
                    text = f"{name}|{made.id}|{turn}"
                    try:
                        await made.user(text)
                    except turnlog.Unavailable:
                        continue  # the server is away: nobody was told that it is there
                    os.write(acks, f"{text}\n".encode())
                rows = await tenant.sessions(limit=10)
                said = [message.blocks[0].text for message in await made.context()]
                strange = {row.title for row in rows} - {name} or [one for one in said if one.split("|")[0] != name]
                if strange:
                    os.write(acks, f"LEAK {name} saw {strange}\n".encode())
                await tenant.close()
                step += 1

        async def forever(number: int) -> None:
            while True:
                try:
                    await session(number)
                except (turnlog.Unavailable, turnlog.AlreadyExists, turnlog.NotFound):
                    await asyncio.sleep(0.1)  # where the server was away in the middle of it, another session is begun
                    load.run += 1000

        async def report() -> None:
            while True:
                await asyncio.sleep(0.2)
                Path(load.out, f"heart-{os.getpid()}.new").write_text(json.dumps(heart.told()))
                os.replace(f"{load.out}/heart-{os.getpid()}.new", f"{load.out}/heart-{os.getpid()}")

        beating = asyncio.create_task(heart.beat())
        await asyncio.gather(beating, report(), *(forever(number) for number in range(load.sessions)))


class Service:
    """One, in a process of its own."""

    def __init__(self, location: str, out: Path, *, tenants: int, sessions: int) -> None:
        self._load = Load(location, str(out), tenants, sessions, 0)
        self.acks = out / "acks"
        self.start()

    def start(self) -> None:
        self._load.run += 1
        command = [sys.executable, "-m", "tests.store.servicelab", msgspec.json.encode(self._load).decode()]
        self.process = subprocess.Popen(command, cwd=ROOT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def count(self) -> int:
        """How much was acknowledged so far."""
        return self.acks.read_bytes().count(b"\n") if self.acks.exists() else 0

    def until(self, count: int) -> None:
        """Wait until so much was."""
        while self.count() < count:
            assert self.process.poll() is None, "the service ended by itself"
            time.sleep(0.02)

    def hearts(self) -> dict[str, float]:
        """Over all of its lives."""
        found = [json.loads(path.read_text()) for path in self.acks.parent.glob("heart-*[0-9]")]
        sums = {name: sum(one[name] for one in found) for name in ("beats", "late", "late_ours")}
        return sums | {name: max((one[name] for one in found), default=0) for name in ("worst_ms", "worst_ours_ms")}


class Lived(NamedTuple):
    """What became of a service."""

    found: "Found"
    hearts: dict[str, float]
    connections: int
    """Of the server, at the end."""


class Found(NamedTuple):
    """What is in the database."""

    acknowledged: int
    tenants: int
    entries: int


def examine(database: str, acks: Path) -> Found:
    """Raise if anything was lost, doubled, or is another tenant's. Asked as somebody who sees all rows."""
    told = acks.read_text().splitlines()
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


def lived(server: Server, out: Path, *, pooled: bool, tenants: int, sessions: int, seconds: float) -> Lived:
    """A service in a new database of that server: killed and started again, then its server, then looked at."""
    database = server.database(f"service-{uuid.uuid4()}")
    turnlog.open(database).close()
    role = server.role()
    server.grant(database, role)
    bouncer = Bouncer(server, role, size=20) if pooled else None
    location = (database if bouncer is None else bouncer.before(database)).replace("postgres@", f"{role}@")
    service = Service(f"{location}?connections=20", out, tenants=tenants, sessions=sessions)
    try:
        service.until(1)
        for harm in (service.kill, server.kill):
            time.sleep(seconds / 3)
            harm()
            (service.start if harm == service.kill else server.start)()
            service.until(service.count() + sessions)
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
