"""The fork of a long session, beside the fork of one with 10 entries."""

import itertools
from pathlib import Path
from typing import Any

import turnlog
from bench.ground import LONG, Ground
from bench.measures import Row, ratio, take_turns

TITLE = "fork of a 100,000-entry session"
ROUNDS = 40


def measure(ground: Ground) -> list[Row]:
    folder = ground.long
    names = itertools.count()
    rows: list[Row] = []
    with turnlog.open(folder) as home:
        sessions = {"of 100,000": (home.resume("long"), LONG // 2), "of 10": (home.resume("ten"), 5)}

        def fork(name: str, *, in_the_middle: bool) -> Any:
            session, middle = sessions[name]
            at = middle if in_the_middle else None
            session.fork(at, id=f"fork-{next(names)}").close()

        for what, middle in (("at its end", False), ("in its middle", True)):
            jobs = {name: lambda name=name, middle=middle: fork(name, in_the_middle=middle) for name in sessions}
            times = take_turns(jobs, rounds=ROUNDS, warm=2)
            rows.append(ratio(f"{TITLE}, {what}", times, "of 100,000", "of 10", bar=3.0))
        rows.append(_disk(folder, sessions["of 100,000"][0]))
    return rows


def _disk(folder: Path, session: turnlog.Session) -> Row:
    before = _taken(folder)
    session.fork(id="fork-for-its-size").close()
    after = _taken(folder)
    blocks, sizes = ((after[i] - before[i]) / 1024 for i in (0, 1))
    return Row(
        f"{TITLE}: disk",
        f"{blocks:g} KB in blocks ({sizes:.1f} KB of text)",
        "-",
        blocks,
        "KB",
        7.999,  # under 8 KB
    )


def _taken(folder: Path) -> tuple[int, int]:
    stats = [path.stat() for path in folder.rglob("*") if path.is_file()]
    return sum(status.st_blocks * 512 for status in stats), sum(status.st_size for status in stats)
