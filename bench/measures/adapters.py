"""Our stores for agent frameworks, each beside that framework's own: in the environments of `make test-adapters`.

An append is timed by the clock, for it waits for the disk; loading, which finds everything in memory, and how steps
grow, by what a core had to do.
"""

import json
import os
import statistics
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import work
from bench.ground import Ground
from bench.measures import Row, say

TITLE = "stores for agent frameworks"
ROUNDS = 5
MESSAGES = 2_000
ROOT = Path(__file__).parents[2]
Measured = dict[str, Any]


@dataclass(frozen=True)
class Bar:
    """How many times theirs, or the payload, ours may be."""

    measure: str
    value: Callable[[Measured], float]
    bar: float
    at_least: bool = False
    than: str = "theirs"
    """What it is compared with: the framework's own store, or what the messages take as JSON lines, or itself."""
    note: str = ""


@dataclass(frozen=True)
class Pair:
    """A framework's own store and ours, both contestants, and what is asked of ours."""

    theirs: str
    ours: str
    bars: tuple[Bar, ...]
    messages: int = MESSAGES


def _rate(row: Measured) -> float:
    return row["append_per_s"]


def _usual(row: Measured) -> float:
    """How often in a second, by the append in the middle: what else the disk had to do falls on a few of them."""
    return 1_000 / row["append_ms"]


def _load(row: Measured) -> float:
    return row["load_cpu_ms"]


def _tail(row: Measured) -> float:
    return row["tail_cpu_ms"]


def _disk(row: Measured) -> float:
    return row["disk_bytes"]


def _listing(row: Measured) -> float:
    return row["list_ms"]


def _summaries(row: Measured) -> float:
    return row["summaries_ms"]


def _tail_of_load(row: Measured) -> float:
    return row["tail_cpu_ms"] / row["load_cpu_ms"]


def _step(number: int) -> Callable[[Measured], float]:
    return lambda row: row["step_ms"][str(number)]


def _growth(row: Measured) -> float:
    return row["step_cpu_ms"]["2000"] / row["step_cpu_ms"]["100"]


PAIRS = {
    "langgraph": Pair(
        "langgraph",
        "turnlog_langgraph",
        (
            Bar("1,000 steps", _rate, 2.0, at_least=True),
            Bar("time of step 1,000", _step(1_000), 1 / 3),
            Bar("cold load", _load, 6.0),
        ),
        messages=1_000,
    ),
    "langgraph, long": Pair(
        "",
        "turnlog_langgraph",
        (Bar("step 2,000 to step 100", _growth, 3.0, than=""), Bar("disk", _disk, 2.0, than="payload")),
    ),
    "openai-agents": Pair(
        "openai_agents",
        "turnlog_openai_agents",
        (
            Bar("append", _usual, 0.8, at_least=True),
            Bar("load", _load, 3.0),
            Bar("tail", _tail, 3.0),
            Bar("disk", _disk, 1.0),
            Bar("disk", _disk, 1.45, than="payload"),
        ),
    ),
    "claude-sdk": Pair(
        "claude_sdk",
        "turnlog_claude_sdk",
        (
            Bar("append beside synced lines", _usual, 0.25, at_least=True),
            Bar("load beside json.loads", _load, 6.0),
            Bar("disk", _disk, 1.25),
            Bar("ms for a session in a listing", _listing, 0.1, than=""),
            Bar("ms for a session's summary", _summaries, 0.5, than=""),
        ),
    ),
    "pydantic-ai": Pair(
        "pydantic_ai",
        "turnlog_pydantic_ai",
        (
            Bar("append beside the whole file", _rate, 10.0, at_least=True),
            Bar("step 2,000 to step 100", _growth, 1.5, than=""),
            Bar("load", _load, 5.0),
            Bar("tail to load", _tail_of_load, 0.15, than=""),
            Bar("disk", _disk, 1.5),
        ),
    ),
    "adk": Pair(
        "google_adk",
        "turnlog_google_adk",
        (
            Bar("append", _usual, 1.5, at_least=True),
            Bar("load", _load, 2.0),
            Bar("disk", _disk, 1.0),
            Bar("ms for a session in a listing", _listing, 0.1, than=""),
        ),
    ),
    "strands": Pair(
        "strands",
        "turnlog_strands",
        (
            Bar("append", _usual, 0.3, at_least=True, note="theirs never syncs: on a slow or busy disk ours waits"),
            Bar("load", _load, 1.0),
            Bar("tail to load", _tail_of_load, 0.15, than=""),
            Bar("disk", _disk, 1.5, than="payload"),
        ),
    ),
}


def measure(ground: Ground) -> list[Row]:
    rows: list[Row] = []
    for name, pair in PAIRS.items():
        python = ROOT / "build/adapters" / name.partition(",")[0] / "bin/python"
        if not python.exists():
            say(f"       {name} is left out: make test-adapters sets up its environment")
            continue
        rounds = [_round(ground, python, pair, number) for number in range(ROUNDS)]
        rows += [_row(name, pair, bar, rounds) for bar in pair.bars]
    return rows


def _round(ground: Ground, python: Path, pair: Pair, number: int) -> tuple[Measured, Measured]:
    contestants = [pair.theirs or pair.ours, pair.ours]
    done = {one: _run(ground, python, one, pair.messages, number) for one in sorted(set(contestants))}
    return done[contestants[0]], done[contestants[1]]


def _run(ground: Ground, python: Path, contestant: str, messages: int, number: int) -> Measured:
    folder = ground.folder / f"{contestant}-{messages}-{number}"
    folder.mkdir()
    output = ground.folder / f"{folder.name}.json"
    command = [python, "-m", "bench.measure", contestant, output, "--folder", folder, "--messages", str(messages)]
    quiet = {"OTEL_SDK_DISABLED": "true", "OPENAI_AGENTS_DISABLE_TRACING": "1", "LANGSMITH_TRACING": "false"}
    env = os.environ | quiet | {"HOME": str(folder)}
    done = subprocess.run([*command, "--cap-s", "120", "--listing"], cwd=ROOT, env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{contestant} failed:\n{done.stderr.strip()}")
    os.sync()
    return json.loads(output.read_text())


def _row(name: str, pair: Pair, bar: Bar, rounds: list[tuple[Measured, Measured]]) -> Row:
    ours = [bar.value(mine) for _, mine in rounds]
    if bar.than == "theirs":
        beside = [bar.value(other) for other, _ in rounds]
    else:
        beside = [float(payload(pair.messages)) if bar.than == "payload" else 1.0] * len(ours)
    ratios = [mine / other for mine, other in zip(ours, beside, strict=True)]
    return Row(
        f"{name}: {bar.measure}",
        f"turnlog: {statistics.median(ours):.4g}",
        f"{bar.than or 'itself'}: {statistics.median(beside):.4g}",
        statistics.median(ratios),
        "x",
        bar.bar,
        at_least=bar.at_least,
        rounds=ratios,
        note=bar.note,
    )


def payload(messages: int) -> int:
    """What the messages take as JSON lines."""
    return sum(len(json.dumps(message)) + 1 for message in work.messages(messages))
