"""Turnlog beside physical references of the same run: `make bench`, or `python -m bench`.

Prints a table with every bar and whether it is met, and saves it to `bench/results/` with the machine and the
commit. Takes a few minutes and about 2.5 GB on the disk it measures; cleans up behind itself.
"""

import argparse
import gc
import importlib
import os
import sys
import tempfile
import time
from pathlib import Path

from bench import report, table
from bench.ground import Ground
from bench.measures import MODULES, Row, say

HERE = Path(__file__).parent


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", help=f"some of {','.join(MODULES)}; nothing is saved then")
    parser.add_argument("--folder", type=Path, default=HERE, help="on the disk to measure")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    only = args.only.split(",") if args.only else list(MODULES)
    unknown = sorted(set(only) - set(MODULES))
    machine = report.machine(args.folder)
    if unknown or machine["filesystem"] == "tmpfs":
        why = f"unknown: {', '.join(unknown)}" if unknown else "a sync costs nothing on tmpfs; pass --folder"
        print(f"error: {why}", file=sys.stderr)
        return 1
    begin = time.monotonic()
    load = os.getloadavg()[0]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix=".scratch-", dir=args.folder) as scratch:
        ground = Ground(Path(scratch))
        for name in (name for name in MODULES if name in only):
            module = importlib.import_module(f"bench.measures.{name}")
            say(f"{time.monotonic() - begin:4.0f} s  {module.TITLE}")
            gc.collect()
            rows += module.measure(ground)
    loads = [load, os.getloadavg()[0]]
    result = table.result(rows, machine=machine, load=loads, took_s=time.monotonic() - begin)
    text = table.render(result)
    print(text)
    if not args.only:
        for path in table.save(result, text, args.results):
            say(f"saved {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
