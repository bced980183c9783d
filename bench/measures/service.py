"""A service with 1,000 tenants and 200 sessions at once on one event loop, killed under load, and its server as well.

The reference is the same service by hand, with as many threads and statements of psycopg, in turns in the same process.
Of a beat of the loop that is late, all but the queue for a processor is counted as ours: see `tests/store/heart.py`.
"""

import asyncio
import random
import shutil
import statistics
import time
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import turnlog
from bench.ground import Ground
from bench.measures import Row
from bench.measures.checkpoint import grow
from bench.server import SETTINGS
from tests.pgbouncer import PROGRAM
from tests.pgserver import Server
from tests.store.heart import BEAT_S, Beats, queued_s
from tests.store.servicelab import lived
from turnlog import aio

TITLE = "a service of many tenants"
TENANTS, SESSIONS, SECONDS = 1_000, 200, 30.0
LARGE = 4_000_000
"""Characters of a text: about as much as the largest model takes."""
ROUNDS = 5
CHECKPOINTS, FILES, PAUSE_S, PAIRS = 12, 12_000, 0.01, 3


def measure(ground: Ground) -> list[Row]:
    ground.folder.chmod(0o711)
    rows = [_row(ground, pooled=pooled) for pooled in ((False, True) if PROGRAM else (False,))]
    return [*rows, asyncio.run(_beside_large(ground)), _beside_checkpoints(ground)]


def _row(ground: Ground, *, pooled: bool) -> Row:
    server = Server(inside=ground.folder, **{**SETTINGS, "max_connections": "100"})  # pyright: ignore[reportArgumentType]
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
        f"late at all: {ours['late']:,.0f}, by {ours['worst_ms']:.0f} ms, of all that {_queued(ours)} for a processor; "
        f"by hand: {bare['late_ours']:,.0f} of {bare['beats']:,.0f}, at most {bare['worst_ours_ms']:.0f} ms "
        f"(late at all: {bare['late']:,.0f}, by {bare['worst_ms']:.0f} ms)",
        ours["worst_ours_ms"],
        "ms",
        50.0,
        facts={**hearts, "connections": connections, **found._asdict()},
        note=f"{found.acknowledged:,} messages acknowledged, none lost, doubled or seen by another tenant; "
        f"{connections} connections",
    )


def _queued(beats: dict[str, float]) -> str:
    return f"{100 * beats['queued_ms'] / beats['late_ms']:.0f} % waiting" if beats["late_ms"] else "nothing waiting"


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


def _beside_checkpoints(ground: Ground) -> Row:
    """How long an append takes while others take checkpoints: awaited, and by hand with as many threads."""
    tree = ground.folder / "worked-in"
    grow(tree, FILES, 120, 24e6)
    taken: dict[str, list[float]] = {"aio": [], "threads": []}
    worst: dict[str, list[float]] = {"aio": [], "threads": []}
    for number in range(PAIRS):
        for way, run in (("aio", _awaited), ("threads", _by_hand)):
            waits = run(ground.folder / f"beside-{way}-{number}", tree)
            taken[way].append(statistics.mean(waits))
            worst[way].append(max(waits))
    shutil.rmtree(tree)
    rounds = [one / other for one, other in zip(taken["aio"], taken["threads"], strict=True)]
    ours, bare = (1000 * statistics.median(taken[way]) for way in ("aio", "threads"))
    most, least = (1000 * max(worst[way]) for way in ("aio", "threads"))
    return Row(
        f"an append beside {CHECKPOINTS} checkpoints of {FILES:,} files, awaited",
        f"{ours:.1f} ms, at most {most:.0f}",
        f"{bare:.1f} ms, at most {least:.0f}, with plain threads",
        statistics.median(rounds),
        "x",
        2.0,
        rounds=rounds,
        facts={"taken_s": taken, "worst_s": worst},
    )


def _awaited(folder: Path, tree: Path) -> list[float]:
    async def main() -> list[float]:
        async with aio.open(folder) as home:
            one = await home.create()
            others = [await home.create(workspace=tree) for _ in range(CHECKPOINTS)]
            long = asyncio.gather(*(other.checkpoint() for other in others))
            waits: list[float] = []
            while not long.done():
                begin = time.monotonic()
                await one.user("a message of a person")
                waits.append(time.monotonic() - begin)
                await asyncio.sleep(PAUSE_S)
            await long
            return waits

    return asyncio.run(main())


def _by_hand(folder: Path, tree: Path) -> list[float]:
    with turnlog.open(folder) as home, ThreadPoolExecutor(CHECKPOINTS) as threads:
        one = home.create()
        others = [home.create(workspace=tree) for _ in range(CHECKPOINTS)]
        long = [threads.submit(other.checkpoint) for other in others]
        waits: list[float] = []
        while not all(task.done() for task in long):
            begin = time.monotonic()
            one.user("a message of a person")
            waits.append(time.monotonic() - begin)
            time.sleep(PAUSE_S)
        for task in long:
            task.result()
        return waits


async def _worst_ms(work: Awaitable[None]) -> float:
    beats = Beats()

    async def beat() -> None:
        while True:
            begin, queued = time.monotonic(), queued_s()
            await asyncio.sleep(BEAT_S)
            beats.count(time.monotonic() - begin - BEAT_S, queued_s() - queued)

    beating = asyncio.create_task(beat())
    await work
    beating.cancel()
    return beats.worst_ours_ms
