"""A session of 300 MB that was compacted near its end, beside a session that has only that end."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import turnlog
from bench.ground import USAGE, Ground, log_of
from bench.measures import Row, ratio, take_turns

TITLE = "300 MB session, compacted near its end"
SIZE_BYTES = 300_000_000
TASKS = [{"id": "1", "content": "find the race", "status": "pending"}]
ROUNDS = 40
MB = 1 << 20

# A process of its own, and the high-water mark of its own memory: what `ru_maxrss` says can be the parent's.
_MEMORY = """
import json, resource, sys, turnlog
with turnlog.open(sys.argv[1]) as home:
    session = home.resume("s")
    answer = len(session.context()), session.title, session.get("tasks"), session.usage().total.output_tokens
try:
    status = open("/proc/self/status").read()
    peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
except OSError:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps([peak, answer]))
"""


def measure(ground: Ground) -> list[Row]:
    homes = {"300 MB": ground.folder / "big", "tail alone": ground.folder / "small"}
    said = {"300 MB": _build(ground, homes["300 MB"], SIZE_BYTES), "tail alone": _build(ground, homes["tail alone"], 0)}

    def context(name: str) -> Any:
        with turnlog.open(homes[name]) as home:
            return home.resume("s").context()

    def facts(name: str) -> Any:
        with turnlog.open(homes[name]) as home:
            session = home.resume("s")
            return session.title, session.get("tasks"), session.usage().total.output_tokens

    for name in homes:
        expected = ("Now with a title", TASKS, said[name] * USAGE.output_tokens)
        if facts(name) != expected or len(context(name)) != len(context("tail alone")):
            raise SystemExit(f"{name}: {facts(name)} and {len(context(name))} messages is not what was written")
    size = log_of(homes["300 MB"], "s").stat().st_size
    return [
        ratio(
            f"{TITLE}: {what}",
            take_turns({name: lambda name=name, job=job: job(name) for name in homes}, rounds=ROUNDS),
            *homes,
            bar=3.0,
            bytes=size,
        )
        for what, job in (("resume, context", context), ("resume, title, get, usage()", facts))
    ] + [_memory(homes), _pending(ground)]


def _pending(ground: Ground) -> Row:
    """What is open in a session that was never compacted."""
    sessions: dict[str, turnlog.Session] = {}
    with ground.building(ground.folder / "open") as home:
        for count in (4_800, 48):
            session = sessions[f"{count:,} messages"] = home.create()
            ground.fill(session, count)
            session.assistant([turnlog.ToolCall(id="open", name="bash")])
        times = take_turns({name: session.pending for name, session in sessions.items()}, rounds=ROUNDS)
        return ratio("pending() of a long session", times, *sessions, bar=3.0)


def _build(ground: Ground, folder: Path, size_bytes: int) -> int:
    """Make the session; returns how many assistant messages it has."""
    with ground.building(folder) as home:
        session = home.create(id="s", workspace=folder, title="Before")
        session.set("title", "Now with a title")
        session.set("tasks", TASKS)
        log = log_of(folder, "s")
        while log.stat().st_size < size_bytes:
            ground.fill(session, 5_000)
        ground.fill(session, 40)
        session.compact("What happened so far …", keep=20)
        ground.fill(session, 60)
        return session.stats().assistant_messages


def _memory(homes: dict[str, Path]) -> Row:
    peaks: dict[str, list[float]] = {name: [] for name in homes}
    for _ in range(5):
        for name, folder in homes.items():
            command = [sys.executable, "-c", _MEMORY, str(folder)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            peaks[name].append(json.loads(done.stdout)[0] / MB)
    big, small = (sorted(peaks[name])[2] for name in homes)
    return Row(
        f"{TITLE}: memory of all that",
        f"300 MB: {big:.1f} MB",
        f"tail alone: {small:.1f} MB",
        big - small,
        "MB",
        64.0,
        rounds=[a - b for a, b in zip(*peaks.values(), strict=True)],
    )
