"""What `import turnlog` adds to the start of a program, beside the one package it cannot do without.

It imports the rest when a name is first used, so that is measured as well: with `turnlog.open`, nearly all of it. And
what it takes to show a session, ours or another agent's, or the help, beside the list of a few.
"""

import os
import resource
import subprocess
import sys

from bench import corpus
from bench.ground import Ground
from bench.measures import Row, difference, ratio, take_turns
from bench.measures.catalog import Machine

TITLE = "import turnlog against import msgspec"
ROUNDS = 40
SHOWN = 15
FEW, FEW_MB = 24, 3
USED = "import turnlog; turnlog.open"

_IMPORT = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"


def measure(ground: Ground) -> list[Row]:
    # Wherever we run, modules are compiled once and not in every round.
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = str(ground.folder / "bytecode")
    times: dict[str, list[float]] = {"import turnlog": [], USED: [], "import msgspec": []}
    for number in range(-2, ROUNDS):
        for name in list(times)[:: 1 if number % 2 else -1]:
            command = [sys.executable, "-c", _IMPORT.format(name)]
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
            if number >= 0:
                times[name].append(float(done.stdout))
    # Both are held to the bar: the fastest says what an import takes, the median what it took on this machine.
    fastest = {name: [min(taken)] for name, taken in times.items()}
    return [
        difference(f"{TITLE}, median", times, "import turnlog", "import msgspec", bar=20.0),
        difference(f"{TITLE}, first used, median", times, USED, "import msgspec", bar=20.0),
        difference(f"{TITLE}, first used, fastest of {ROUNDS}", fastest, USED, "import msgspec", bar=20.0),
        *_beside_a_list(ground),
    ]


def _beside_a_list(ground: Ground) -> list[Row]:
    """Whole processes, in processor time: a busy machine makes all of them wait, and not equally long."""
    machine = Machine(corpus.make(ground.folder / "few", sessions=FEW, mb=FEW_MB))
    with ground.building(machine.made.home / ".turnlog") as home:
        ground.fill(home.create(id="mine", workspace=machine.made.home), 20)
    machine.run("index")
    beside = "turnlog ls --all"
    words = {
        beside: ("ls", "--all"),
        "turnlog show, ours": ("show", "mine"),
        "turnlog show, another agent's": ("show", f"claude-code:{machine.made.newest.stem}"),
        "turnlog --help": ("--help",),
    }
    jobs = {name: lambda typed=typed: machine.call(*machine.command(*typed)) for name, typed in words.items()}
    times = take_turns(jobs, rounds=SHOWN, warm=2, clock=_processor)
    return [
        ratio(f"{name} beside ls, {FEW} sessions", times, name, beside, bar=2.0) for name in words if name != beside
    ]


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
