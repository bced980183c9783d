"""Eight writers at once on one session: threads that share its object, and processes that each have their own.

The reference is as many writers that each write the same bytes to one file and sync it, with nothing to agree on.
"""

import multiprocessing
import os
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import turnlog
from bench.ground import Ground, prose
from bench.measures import Row

TITLE = "eight writers, one session"
WRITERS, EACH, WARM = 8, 80, 2
ROUNDS = 20

Append = Callable[[], Any]
Open = Callable[[ExitStack], Append]
_fork = multiprocessing.get_context("fork")


def measure(ground: Ground) -> list[Row]:
    folder = ground.folder / "together"
    with turnlog.open(folder) as home:
        return [
            _row("threads", _in_threads, folder, home, _shared, bar=0.2),
            _row("processes", _in_processes, folder, home, _own, bar=0.1),
        ]


def _row(
    who: str,
    at_once: Callable[[list[Open]], float],
    folder: Path,
    home: turnlog.Home,
    opened: Callable[[turnlog.Home, str], list[Open]],
    *,
    bar: float,
) -> Row:
    """Each round has a new session and a new file."""
    times: dict[str, list[float]] = {"turnlog": [], "raw": []}
    for number in range(-1, ROUNDS):
        name = f"{who}{number + 1}"
        home.create(id=name).close()
        jobs = {"turnlog": opened(home, name), "raw": [_raw(folder / f"raw-{name}")] * WRITERS}
        for key in ("turnlog", "raw") if number % 2 else ("raw", "turnlog"):
            took = at_once(jobs[key])
            if number >= 0:
                times[key].append(took)
    rates = {key: WRITERS * EACH / statistics.median(taken) for key, taken in times.items()}
    rounds = [theirs / ours for ours, theirs in zip(times["turnlog"], times["raw"], strict=True)]
    return Row(
        f"eight {who}, one session: durable appends of 2 KB",
        f"turnlog: {rates['turnlog']:,.0f} a second",
        f"write + fdatasync: {rates['raw']:,.0f} a second",
        statistics.median(rounds),
        "x",
        bar,
        at_least=True,
        rounds=rounds,
        facts={f"{key}_per_s": round(rate) for key, rate in rates.items()},
    )


def _shared(home: turnlog.Home, name: str) -> list[Open]:
    """One session object for all."""
    session = home.resume(name)
    text = prose(1_900)
    return [lambda _: lambda: session.note(text)] * WRITERS


def _own(home: turnlog.Home, name: str) -> list[Open]:
    """An object for each, as processes have them."""
    text = prose(1_900)

    def resume(stack: ExitStack) -> Append:
        session = stack.enter_context(home.resume(name))
        return lambda: session.note(text)

    return [resume] * WRITERS


def _raw(path: Path) -> Open:
    data = b"x" * 2_048

    def opened(stack: ExitStack) -> Append:
        fd = stack.enter_context(path.open("ab", buffering=0)).fileno()

        def append() -> None:
            os.write(fd, data)
            os.fdatasync(fd)

        return append

    return opened


def _work(opened: Open, begin: Any, end: Any) -> None:
    with ExitStack() as stack:
        append = opened(stack)
        for _ in range(WARM):
            append()
        begin.wait()
        for _ in range(EACH):
            append()
        end.wait()


def _in_threads(jobs: list[Open]) -> float:
    begin, end = threading.Barrier(len(jobs) + 1), threading.Barrier(len(jobs) + 1)
    return _timed([threading.Thread(target=_work, args=(job, begin, end)) for job in jobs], begin, end)


def _in_processes(jobs: list[Open]) -> float:
    begin, end = _fork.Barrier(len(jobs) + 1), _fork.Barrier(len(jobs) + 1)
    return _timed([_fork.Process(target=_work, args=(job, begin, end)) for job in jobs], begin, end)


def _timed(workers: list[Any], begin: Any, end: Any) -> float:
    for worker in workers:
        worker.start()
    begin.wait()
    start = time.perf_counter()
    end.wait()
    took = time.perf_counter() - start
    for worker in workers:
        worker.join()
    return took
