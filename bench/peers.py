"""Turnlog next to its peers: the same session, the same machine, one run.

`python -m bench.peers` appends 2,000 messages one by one to each store, loads them, loads the
last 50, prints a table and who was faster, and saves both to `bench/results/`; with `--postgres`,
those that keep sessions in PostgreSQL, on one server that is started for it. Contestants take
turns, each round in a process of its own, so that a slow moment of the machine hits everybody.
Leave some minutes between two runs: the clean-up of one slows file creation in the next.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench import report
from bench.contestants import CONTESTANTS, ON_SERVER
from bench.server import serving

HERE = Path(__file__).parent
EVERYBODY = CONTESTANTS | ON_SERVER

# The peers must not phone home, nor read the settings of whoever runs this.
QUIET = {
    "ANONYMIZED_TELEMETRY": "false",
    "DO_NOT_TRACK": "1",
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
}


class Failed(Exception):
    """A contestant is missing or broke; there is nothing to compare."""


def installed(names: list[str]) -> dict[str, str]:
    """The versions of everything that will run; all that is missing is named at once."""
    found: dict[str, str] = {}
    missing: list[str] = []
    for name in names:
        try:
            found[name] = ", ".join(version(package) for package in EVERYBODY[name].requires)
        except PackageNotFoundError as error:
            missing.append(str(error.name))
    if missing:
        raise Failed(f"not installed: {', '.join(missing)}")
    return found


def run_round(name: str, folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    output = folder / "row.json"
    command = [sys.executable, "-m", "bench.measure", name, str(output)]
    command += ["--folder", str(folder), "--messages", str(args.messages)]
    command += ["--cap-s", str(args.cap_s)]
    env = os.environ | QUIET | {"HOME": str(folder), "LLM_USER_PATH": str(folder)}
    done = subprocess.run(command, cwd=HERE.parent, env=env, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{EVERYBODY[name].title} failed:\n{done.stderr.strip()}")
    return json.loads(output.read_text())


def run_all(names: list[str], args: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    slow: set[str] = set()
    # Nothing is deleted before the end. After a folder of 2,000 files is, ext4 creates files near
    # it up to 15 times slower for minutes, which falls on whoever stores a file per message.
    with (
        tempfile.TemporaryDirectory(prefix=".scratch-", dir=args.folder) as scratch,
        serving(Path(scratch)) if args.postgres else nullcontext() as server,
    ):
        for number in range(args.rounds):
            for name in names:
                if name in slow:
                    continue
                print(f"round {number + 1}/{args.rounds}: {name}", file=sys.stderr, flush=True)
                folder = Path(scratch, f"{name}-{number}")
                folder.mkdir()
                if server is not None:
                    (folder / "server").write_text(server.database(f"{name}_{number}"))
                start = time.monotonic()
                rounds[name].append(run_round(name, folder, args))
                # What this round left to write back belongs to nobody else's round.
                os.sync()
                if time.monotonic() - start > args.slow_s:
                    slow.add(name)
    return rounds


def summary(name: str, versions: str, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The round with the middle append rate, loads as the median over rounds."""
    middle = sorted(rounds, key=lambda row: row["append_per_s"])[(len(rounds) - 1) // 2]
    return {
        **middle,
        "name": name,
        "title": EVERYBODY[name].title,
        "version": versions,
        "rounds": len(rounds),
        "can_tail": EVERYBODY[name].can_tail,
        "load_ms": statistics.median(row["load_ms"] for row in rounds),
        "tail_ms": statistics.median(row["tail_ms"] for row in rounds),
        "all_rounds": [{key: row[key] for key in ("append_per_s", "load_ms", "tail_ms")} for row in rounds],
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.peers", description=__doc__)
    parser.add_argument("--messages", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cap-s", type=float, default=120, help="stop appending after this")
    parser.add_argument("--slow-s", type=float, default=20, help="one round only beyond this")
    parser.add_argument("--postgres", action="store_true", help="those on a PostgreSQL server")
    parser.add_argument("--only", help=f"some of {','.join(EVERYBODY)}; raw is always there")
    parser.add_argument("--folder", type=Path, default=HERE, help="on the disk to measure")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    group = ON_SERVER if args.postgres else CONTESTANTS
    only = args.only.split(",") if args.only else list(group)
    unknown = sorted(set(only) - set(group))
    names = [name for name in group if name in only or name.startswith("raw")]
    try:
        if unknown:
            raise Failed(f"unknown: {', '.join(unknown)}")
        machine = report.machine(args.folder)
        if machine["filesystem"] == "tmpfs":
            raise Failed("the folder is on tmpfs, where a sync costs nothing; pass --folder")
        versions = installed(names)
        rounds = run_all(names, args)
    except Failed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    rows = [summary(name, versions[name], rounds[name]) for name in names]
    result = report.result(rows, machine=machine, messages=args.messages)
    text = report.render(result)
    print(text)
    for path in report.save(result, text, args.results, "peers-postgres" if args.postgres else "peers"):
        print(f"saved {path.name}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
