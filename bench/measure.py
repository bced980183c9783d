"""One contestant, one round, in a process of its own: `python -m bench.measure NAME OUTPUT …`."""

import argparse
import asyncio
import gc
import importlib
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bench import work
from bench.contestants import Store

WINDOW = 200
LOADS = 5
TAIL = 50
STEPS = (100, 1_000, 2_000)
NEAR = 50
"""A step takes what so many up to it do."""
MANY = 1_000
Spent = tuple[float, float]
"""Seconds that went by, and those that a core worked for this process, however busy the machine is."""


async def measure(store: Store, n: int, *, cap_s: float) -> dict[str, Any]:
    """Append `n` messages, or as many as fit into `cap_s`; load them, and their tail."""
    messages = work.messages(n)
    await store.create()
    spent = await _append(store, messages, cap_s)
    await store.close()
    # Left for the collector, the appended objects would be traversed inside the timed loads.
    gc.collect()
    gc.freeze()

    times = [wall for wall, _ in spent]
    done = messages[: len(times)]
    tail = done[-TAIL:]
    load_ms, load_cpu_ms = await _load(store, store.load, done)
    tail_ms, tail_cpu_ms = await _load(store, lambda: store.tail(TAIL), tail)
    window = min(WINDOW, max(1, len(times) // 2))
    return {
        "messages": len(times),
        "append_per_s": len(times) / sum(times),
        "start_ms": _percentiles(times[:window]),
        "end_ms": _percentiles(times[-window:]),
        "append_ms": statistics.median(times) * 1_000,
        "step_ms": {n: statistics.median(times[n - NEAR : n]) * 1_000 for n in STEPS if n <= len(times)},
        "step_cpu_ms": {n: _median_cpu(spent[n - NEAR : n]) for n in STEPS if n <= len(times)},
        "load_ms": load_ms,
        "load_cpu_ms": load_cpu_ms,
        "tail_ms": tail_ms,
        "tail_cpu_ms": tail_cpu_ms,
        "durability": store.durability(),
    }


async def _append(store: Store, messages: list[work.Message], cap_s: float) -> list[Spent]:
    items = [store.native(index, message) for index, message in enumerate(messages)]
    gc.collect()
    spent: list[Spent] = []
    stop = time.perf_counter() + cap_s
    for item in items:
        start, cpu = time.perf_counter(), time.process_time()
        await store.append(item)
        end = time.perf_counter()
        spent.append((end - start, time.process_time() - cpu))
        if end > stop:
            break
    return spent


def _median_cpu(spent: list[Spent]) -> float:
    return statistics.median(cpu for _, cpu in spent) * 1_000


async def _load(
    store: Store, load: Callable[[], Awaitable[list[Any]]], expected: list[work.Message]
) -> tuple[float, float]:
    # A load that gives back less than was put in must not count as a fast one; it is also
    # what warms the page cache.
    wanted = [string for _, parts in expected for string in work.strings(parts)]
    if store.strings(await load()) != wanted:
        raise SystemExit("what was loaded is not what was appended")
    spent: list[Spent] = []
    for _ in range(LOADS):
        start, cpu = time.perf_counter(), time.process_time()
        loaded = await load()
        spent.append((time.perf_counter() - start, time.process_time() - cpu))
        del loaded
    return statistics.median(wall for wall, _ in spent) * 1_000, _median_cpu(spent)


async def _listings(store: Any) -> dict[str, float]:
    """For each of many sessions in a listing; with their summaries, where there are such."""
    await store.fill(MANY)
    found = {"list_ms": await _listing(store.listing)}
    if hasattr(store, "summaries"):
        found["summaries_ms"] = await _listing(store.summaries)
    return found


async def _listing(listing: Callable[[], Awaitable[list[Any]]]) -> float:
    times: list[float] = []
    for _ in range(LOADS + 1):
        start = time.perf_counter()
        found = await listing()
        times.append(time.perf_counter() - start)
        if len(found) != MANY:
            raise SystemExit("a listing that does not have them all")
    return statistics.median(times[1:]) * 1_000 / MANY


def _percentiles(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {f"p{p}": ordered[len(ordered) * p // 100] * 1_000 for p in (50, 99)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.measure", description=__doc__)
    parser.add_argument("name")
    parser.add_argument("output", type=Path)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--messages", type=int, required=True)
    parser.add_argument("--cap-s", type=float, required=True)
    parser.add_argument("--listing", action="store_true", help="of many sessions, where the store has one")
    args = parser.parse_args()
    store: Store = importlib.import_module(f"bench.contestants.{args.name}").Store(args.folder)
    row = asyncio.run(measure(store, args.messages, cap_s=args.cap_s))
    row["disk_bytes"] = sum(path.stat().st_size for path in args.folder.rglob("*") if path.is_file())
    if args.listing and hasattr(store, "listing"):
        row |= asyncio.run(_listings(store))
    args.output.write_text(json.dumps(row))


if __name__ == "__main__":
    main()
