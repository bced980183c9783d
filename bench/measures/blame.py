"""`turnlog blame` of a file that 400 checkpoints saw grow, as a whole process beside a bare Python.

The folder has 2,000 files: once in 40 folders, once all in one, where every checkpoint has a list of all of them.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

from bench.ground import Ground
from bench.measures import Row, ratio, take_turns

TITLE = "blame of 700 lines over 400 checkpoints and 2,000 files, whole processes"
FILES, TURNS, LINES = 2_000, 200, 700
ROUNDS = 11
BAR, FLAT_BAR = 40.0, 60.0
"""What is asked of a folder as projects are; and of one where each of 400 trees has 2,000 names."""


def measure(ground: Ground) -> list[Row]:
    return [_measured(ground, "in 40 folders", 40, BAR), _measured(ground, "all in one folder", 1, FLAT_BAR)]


def _measured(ground: Ground, name: str, folders: int, bar: float) -> Row:
    home, file, expected = _build(ground, ground.folder / f"blame-{folders}", folders)
    env = {**os.environ, "TURNLOG_HOME": str(home), "PYTHONPYCACHEPREFIX": str(ground.folder / "bytecode")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    words = [sys.executable, "-m", "turnlog", "blame", "--json", str(file)]

    def run(*command: str) -> bytes:
        return subprocess.run(command, env=env, check=True, capture_output=True).stdout

    found = [line["turn"] or line["why"] for line in json.loads(run(*words))["lines"]]
    wrong = sum(left != right for left, right in zip(found, expected, strict=True))
    if wrong:
        raise AssertionError(f"{wrong} of {len(expected)} lines have another author")
    jobs = {"turnlog blame": lambda: run(*words), "python -c pass": lambda: run(sys.executable, "-c", "pass")}
    times = take_turns(jobs, rounds=ROUNDS, warm=2)
    best = {key: [min(taken)] for key, taken in times.items()}
    return ratio(f"{TITLE}, {name}, best of {ROUNDS}", best, "turnlog blame", "python -c pass", bar=bar)


def _build(ground: Ground, place: Path, folders: int) -> tuple[Path, Path, list[int | str]]:
    """The home, the file, and of each of its lines the turn that wrote it, or why none did."""
    rng = random.Random(7)
    folder, home = place / "project", place / "home"
    for number in range(FILES):
        path = folder / f"pkg{number % folders:02}" / f"file{number:04}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"number = {number}\n" * 20)
    file = folder / "pkg00" / "file0000.py"
    tagged: list[tuple[str, int | str]] = [(f"first = {number}", "before") for number in range(100)]

    def change(turn: int | str, count: int) -> None:
        for _ in range(count):
            at = rng.randint(0, len(tagged))
            tagged[at : at + (rng.random() < 0.3)] = [(f"value_{rng.random()} = {turn!r}", turn)]
        if len(tagged) > LINES:
            del tagged[: len(tagged) - LINES]
        file.write_text("".join(text + "\n" for text, _ in tagged))

    change("before", 1)
    with ground.building(home) as opened:
        session = opened.create(id="blamed", workspace=folder, agent="bench")
        for turn in range(1, TURNS + 1):
            with session.turn():
                session.user(f"prompt {turn}")
                change(turn, 4)
            change("between" if turn < TURNS else "since", 1)
    while len(tagged) < LINES:
        change("since", 1)
    return home, file, [author for _, author in tagged]
