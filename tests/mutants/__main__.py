"""Plant the faults.

`make mutants` copies `src`, plants one fault in the copy, and runs the tests that ought to see it against the copy.
It fails if a fault goes unnoticed, if its text is no longer in the code, or if those tests fail without any fault.
`ARGS='lock sync'` chooses faults by a part of their name.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.mutants import MUTANTS
from tests.mutants.mutant import Mutant

ROOT = Path(__file__).resolve().parents[2]
_PATIENCE_S = 300
_BEFORE_S = 3600
"""The tests of all faults together, before any fault is planted."""


class Outcome(NamedTuple):
    mutant: str
    verdict: str
    seconds: float
    detail: str

    @property
    def is_good(self) -> bool:
        return self.verdict == "noticed"


def plant(mutant: Mutant, src: Path) -> str | None:
    """Put the fault into a copy; the reason if that cannot be done."""
    path = src / "turnlog" / mutant.path
    text = path.read_text(encoding="utf-8")
    if (count := text.count(mutant.old)) != 1:
        return f"its text is {count} times in {mutant.path}"
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    return None


def run_tests(src: Path, tests: tuple[str, ...], patience_s: int = _PATIENCE_S, workers: int = 0) -> tuple[int, str]:
    """pytest against a copy of the code: its exit code, and its last words."""
    command = [
        sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-x", "-q", "--no-header", "--tb=no",
        "-n", str(workers), "-p", "no:cacheprovider", "-o", f"faulthandler_timeout={_PATIENCE_S}", *tests,
    ]  # fmt: skip
    paths = [str(src), str(ROOT)]
    try:
        finished = subprocess.run(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True, check=False, text=True, timeout=patience_s,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 1, f"hangs for {patience_s} s"
    words = [line for line in finished.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return finished.returncode, words[0] if words else (finished.stdout + finished.stderr).strip()[-200:]


def try_out(mutant: Mutant) -> Outcome:
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="turnlog-mutant-") as folder:
        src = Path(folder) / "src"
        shutil.copytree(ROOT / "src", src, ignore=shutil.ignore_patterns("__pycache__"))
        problem = plant(mutant, src)
        if problem is not None:
            return Outcome(mutant.name, "not planted", 0.0, problem)
        code, words = run_tests(src, mutant.tests)
    seconds = time.monotonic() - begin
    if code == 1:
        return Outcome(mutant.name, "noticed", seconds, words.removeprefix("FAILED ").partition(" - ")[0])
    return Outcome(mutant.name, "SURVIVED" if code == 0 else "broken", seconds, words)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only faults whose name has one of these words")
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    mutants = [m for m in MUTANTS if not chosen.names or any(name in m.name for name in chosen.names)]
    if not mutants:
        print("no fault has such a name")
        return 1
    tests = tuple(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
    code, words = run_tests(ROOT / "src", tests, _BEFORE_S, chosen.workers)
    if code:
        print(f"the tests fail without any fault: {words}")
        return 1
    with ThreadPoolExecutor(chosen.workers) as pool:
        outcomes = []
        for outcome in pool.map(try_out, mutants):
            outcomes.append(outcome)
            print(f"{outcome.verdict:<12} {outcome.seconds:5.1f} s  {outcome.mutant:<60} {outcome.detail}", flush=True)
    bad = [outcome for outcome in outcomes if not outcome.is_good]
    print(f"{len(outcomes) - len(bad)} of {len(outcomes)} faults noticed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
