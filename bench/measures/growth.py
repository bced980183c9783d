"""What an append costs in a long log, beside the same append in a short one."""

import shutil
import statistics
import time
from pathlib import Path

import turnlog
from bench.ground import Ground, prose
from bench.measures import Row, ratio
from turnlog.session.opening import Durability

TITLE = "append at entry 100,000 against entry 100, p50"
COPIES = 4
ROUNDS = 10
BLOCK = 40
WARM = 5


def measure(ground: Ground) -> list[Row]:
    return [
        ratio(TITLE, _times(ground, "fsync"), "at 100,000", "at 100", bar=1.1),
        ratio(f"{TITLE}, without the sync", _times(ground, "flush"), "at 100,000", "at 100", bar=1.1),
    ]


def _times(ground: Ground, durability: Durability) -> dict[str, list[float]]:
    """A new short session in each round, a new copy of the long one in some: it matters where a file lies."""
    times: dict[str, list[float]] = {"at 100,000": [], "at 100": []}
    for copy in range(COPIES):
        folder = ground.folder / f"growth-{durability}-{copy}"
        shutil.copytree(ground.long, folder)
        with ground.building(folder) as home:
            for number in range(ROUNDS):
                ground.fill(home.create(id=f"short-{number}", workspace=folder), 80)
        for number in range(ROUNDS):
            pair = [("at 100,000", "long"), ("at 100", f"short-{number}")]
            for name, session in pair if number % 2 else reversed(pair):
                times[name].append(_append(folder, session, durability))
        shutil.rmtree(folder)
    return times


def _append(folder: Path, name: str, durability: Durability) -> float:
    text = prose(1_870)
    times: list[float] = []
    with turnlog.open(folder, durability=durability) as home:
        session = home.resume(name)
        for _ in range(WARM):
            session.user(text)
        for _ in range(BLOCK):
            start = time.perf_counter()
            session.user(text)
            times.append(time.perf_counter() - start)
    return statistics.median(times)
