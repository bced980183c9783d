"""What `import turnlog` adds to the start of a program, beside the one package it cannot do without.

It imports the rest when a name is first used, so that is measured as well: with `turnlog.open`, nearly all of it.
"""

import os
import subprocess
import sys

from bench.ground import Ground
from bench.measures import Row, difference

TITLE = "import turnlog against import msgspec"
ROUNDS = 40
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
    ]
