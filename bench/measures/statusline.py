"""`turnlog statusline` as a whole process beside a bare Python: it runs after every answer."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import turnlog
from bench.ground import Ground
from bench.measures import Row, ratio

TITLE = "the status line, a whole process"
ROUNDS = 21
SESSIONS = 200
PROGRAM = Path(sys.executable).with_name("turnlog")
TOLD = {
    "model": {"display_name": "Opus 4.1"},
    "cwd": "/home/ada/api",
    "cost": {"total_cost_usd": 1.2},
    "context_window": {"used_percentage": 31},
    "rate_limits": {"five_hour": {"used_percentage": 43, "resets_at": 4_000_000_000}},
}


def measure(ground: Ground) -> list[Row]:
    place = ground.folder / "statusline"
    place.mkdir()
    env = {
        **os.environ, "HOME": str(place), "TURNLOG_HOME": str(place / "home"), "XDG_CACHE_HOME": str(place / "cache"),
        "XDG_STATE_HOME": str(place / "state"), "PYTHONPYCACHEPREFIX": str(ground.folder / "bytecode"),
    }  # fmt: skip
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    with turnlog.open(place / "home", durability="flush") as home:
        for _ in range(SESSIONS):
            with home.create(workspace=place) as session:
                session.assistant("x", model="m", usage=turnlog.Usage(1, 1, cost_micros=5))
    subprocess.run([PROGRAM, "index"], env=env, check=True, stdout=subprocess.DEVNULL)
    times: dict[str, list[float]] = {"turnlog statusline": [], "python -c pass": []}
    commands = {"turnlog statusline": [PROGRAM, "statusline"], "python -c pass": [sys.executable, "-c", "pass"]}
    for number in range(-3, ROUNDS):
        for name, words in commands.items():
            began = time.perf_counter()
            subprocess.run(words, input=json.dumps(TOLD).encode(), env=env, check=True, stdout=subprocess.DEVNULL)
            taken = time.perf_counter() - began
            if number >= 0:
                times[name].append(taken)
        if number < 0:
            time.sleep(1.5)  # the first one has the index brought up to date
    best = {name: [min(taken)] for name, taken in times.items()}
    return [ratio(f"{TITLE}, best of {ROUNDS}", best, "turnlog statusline", "python -c pass", bar=5.0)]
