"""A service with 1,000 tenants and 200 sessions at once on one event loop, killed under load, and its server as well.

The reference is the same service by hand, with as many threads and statements of psycopg, in turns in the same process.
Of a beat of the loop that is late, at most the processor time that our threads had meanwhile is because of us.
"""

import asyncio
import random
import time
from collections.abc import Awaitable

from bench.ground import Ground
from bench.measures import Row
from bench.server import SETTINGS
from tests.pgbouncer import PROGRAM
from tests.pgserver import Server
from tests.store.heart import Beats
from tests.store.servicelab import lived
from turnlog import aio

TITLE = "a service of many tenants"
TENANTS, SESSIONS, SECONDS = 1_000, 200, 30.0
LARGE = 4_000_000
"""Characters of a text: about as much as the largest model takes."""
ROUNDS = 5


def measure(ground: Ground) -> list[Row]:
    ground.folder.chmod(0o711)
    rows = [_row(ground, pooled=pooled) for pooled in ((False, True) if PROGRAM else (False,))]
    return [*rows, asyncio.run(_beside_large(ground))]


def _row(ground: Ground, *, pooled: bool) -> Row:
    server = Server(inside=ground.folder, **{**SETTINGS, "max_connections": "100"})
    try:
        found, hearts, connections = lived(server, pooled=pooled, tenants=TENANTS, sessions=SESSIONS, seconds=SECONDS)
    finally:
        server.remove()
    ours, bare = hearts["turnlog"], hearts["bare"]
    way = "through PgBouncer" if pooled else "without a pooler"
    share = f"{100 * ours['late_ours'] / ours['late']:.0f} % of those late" if ours["late"] else "none late"
    return Row(
        f"{SESSIONS} sessions of {TENANTS:,} tenants at once, {way}: the loop late because of us",
        f"{ours['late_ours']:,.0f} of {ours['beats']:,.0f} beats ({share}), at most {ours['worst_ours_ms']:.0f} ms",
        f"late at all: {ours['late']:,.0f}, by {ours['worst_ms']:.0f} ms; by hand: {bare['late']:,.0f} of "
        f"{bare['beats']:,.0f}, by {bare['worst_ms']:.0f} ms",
        ours["worst_ours_ms"],
        "ms",
        50.0,
        facts={**hearts, "connections": connections, **found._asdict()},
        note=f"{found.acknowledged:,} messages acknowledged, none lost, doubled or seen by another tenant; "
        f"{connections} connections",
    )


async def _beside_large(ground: Ground) -> Row:
    """A text of that size is appended, read and searched: how late the loop is meanwhile, in the worst moment."""
    words = random.Random(1).choices(["session ", "größe ", '"quoted" ', "line\n", "x = 1; "], k=LARGE // 8)
    text = "".join(words)
    rounds: list[float] = []
    async with aio.open(ground.folder / "large", checkpoints=False) as home:
        for number in range(ROUNDS):

            async def work(name: str = f"l{number}") -> None:
                session = await home.create(id=name)
                await session.user(text)
                await (await home.resume(name)).context()
                await home.search("quoted")

            rounds.append(await _worst_ms(work()))
    return Row(
        f"a text of {LARGE:,} characters is appended, read and searched: the loop late meanwhile",
        f"{sorted(rounds)[ROUNDS // 2]:.0f} ms in the worst moment",
        "in time",
        sorted(rounds)[ROUNDS // 2],
        "ms",
        50.0,
        rounds=rounds,
    )


async def _worst_ms(work: Awaitable[None]) -> float:
    beats = Beats()

    async def beat() -> None:
        while True:
            begin = time.monotonic()
            await asyncio.sleep(0.005)
            beats.count(time.monotonic() - begin - 0.005, 0)

    beating = asyncio.create_task(beat())
    await work
    beating.cancel()
    return beats.worst_ms
