"""Faults planted into the code, one at a time: the tests have to notice every one of them.

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

ROOT = Path(__file__).resolve().parents[1]
CRASHES = "tests/store/test_crash_states.py"
ERRORS = "tests/store/test_io_errors.py"
PROCESSES = "tests/store/test_processes.py"
KILLS = "tests/store/test_kill9.py"
LOCKS = "tests/store/test_locks.py"
DOUBT = "tests/store/test_doubt.py"
FORKS = "tests/session/test_forks.py"
_PATIENCE_S = 300


class Mutant(NamedTuple):
    """One fault: in which file below src/turnlog, what becomes of which text, and which tests must notice."""

    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]


LOGFILE = "store/files/logfile.py"
TAIL = "store/files/tail.py"
DISK = "store/files/disk.py"
STORE = "store/files/__init__.py"
FOLDER = "store/files/folder.py"
PACKS = "store/files/packwriter.py"
KNOWN = "store/files/known.py"
HANDLE = "store/files/handle.py"

MUTANTS = [
    # The end of a log.
    Mutant(
        "a torn tail is not sealed off",
        TAIL,
        "        return self.end - self.good\n",
        "        return 0\n",
        (CRASHES, KILLS),
    ),
    Mutant(
        "a complete tail is sealed, not adopted",
        LOGFILE,
        "        if not is_adoptable(self._file.read, size):\n",
        "        if True:\n",
        (CRASHES,),
    ),
    Mutant(
        "an unfinished batch counts",
        "log/assemble.py",
        "    if following is None:\n        return True\n",
        "    if following is None:\n        return False\n",
        (CRASHES,),
    ),
    Mutant(
        "what says `sealed` seals nothing",
        "log/assemble.py",
        "    return following[1].sealed > 0 and",
        "    return False and",
        (CRASHES,),
    ),
    Mutant(
        "the line that seals is not synced before others",
        LOGFILE,
        "            self._sync_or_give_up()\n        return entries\n",
        "            pass\n        return entries\n",
        (CRASHES,),
    ),
    Mutant(
        "a line follows a batch that may be lost in part",
        LOGFILE,
        "        if tail.ends_in_batch and self._durable",
        "        if False and self._durable",
        (CRASHES,),
    ),
    Mutant(
        "numbers of damaged entries are given out again",
        TAIL,
        "            self.floor += self.damaged // _SHORTEST_LINE + 1\n",
        "            pass\n",
        (DOUBT,),
    ),
    Mutant(
        "numbers of hidden entries are given out again",
        TAIL,
        "        self.floor = max(self.floor, hidden)\n",
        "",
        (DOUBT, CRASHES),
    ),
    # Syncs.
    Mutant(
        "an append is not synced",
        LOGFILE,
        "                self._disk.sync(fd)\n            except OSError:\n",
        "                pass\n            except OSError:\n",
        (CRASHES,),
    ),
    Mutant(
        "an error of a sync is ignored",
        LOGFILE,
        "            except OSError:\n"
        "                with self._mutex:\n"
        "                    if fd == self._file.fd:\n"
        "                        self._give_up_descriptor()\n"
        "                raise\n",
        "            except OSError:\n                pass\n",
        (ERRORS,),
    ),
    Mutant(
        "a descriptor is used again after a failed sync",
        LOGFILE,
        "        self._tail = None\n        self._file.leave()\n        self._try_to_cut()\n",
        "        self._tail = None\n        self._try_to_cut()\n",
        (ERRORS,),
    ),
    Mutant(
        "a retry is answered from the page cache",
        KNOWN,
        "        self._doubted.update(seqs)\n",
        "        return\n",
        (ERRORS,),
    ),
    Mutant(
        "numbers of entries that failed to sync are given out again",
        LOGFILE,
        ", self._unsynced.last_failed)\n",
        ")\n",
        (ERRORS,),
    ),
    Mutant(
        "the lock is kept when the sync of a seal fails",
        HANDLE,
        "            self._disk.unlock(self.fd)\n            self._old.append(self.fd)\n",
        "            self._old.append(self.fd)\n",
        (f"{ERRORS}::test_a_failed_sync_of_a_line_that_seals_does_not_keep_the_lock",),
    ),
    Mutant(
        "a failed write is not cut back",
        LOGFILE,
        "            self._disk.ftruncate(self._file.fd, start)\n",
        "            pass\n",
        (ERRORS,),
    ),
    Mutant(
        "a repeated entry is said twice",
        "session/history.py",
        "            if entry.again and self.is_repeat(entry):\n",
        "            if False:\n",
        (ERRORS,),
    ),
    Mutant(
        "an id counts twice if another object wrote it",
        KNOWN,
        "        self._forgotten = _counter(new_id())\n",
        "        pass\n",
        (ERRORS,),
    ),
    # Names.
    Mutant(
        "the name of a new session is not synced",
        STORE,
        "            self._disk.sync_folder(os.path.join(self.folder, SESSIONS))\n",
        "",
        (CRASHES,),
    ),
    Mutant(
        "the names of new folders are not synced",
        FOLDER,
        "                continue\n            self._disk.sync_folder(os.path.dirname(path))\n",
        "                continue\n",
        (CRASHES,),
    ),
    Mutant(
        "folders that a dead process made are taken for synced",
        FOLDER,
        "            self._sync_above()\n",
        "",
        (CRASHES,),
    ),
    Mutant(
        "a session that a dead process made is taken for synced",
        LOGFILE,
        "            if self._durable:\n                self._disk.sync_folder(folder)\n",
        "",
        (CRASHES,),
    ),
    Mutant(
        "a session that is deleted is not synced into the trash",
        STORE,
        "            self._disk.sync_folder(os.path.dirname(new))\n"
        "            self._disk.sync_folder(os.path.dirname(old))\n",
        "",
        (CRASHES,),
    ),
    Mutant(
        "a purge does not keep what forks need",
        STORE,
        "            if needed:\n                self._write_file",
        "            if False:\n                self._write_file",
        (CRASHES, FORKS),
    ),
    Mutant(
        "a purge does not ask whether it can read the forks",
        STORE,
        "                if found.start is None:\n                    return _UNKNOWN\n",
        "                if found.start is None:\n                    continue\n",
        (PROCESSES,),
    ),
    Mutant(
        "a fork does not look whether its parent was purged",
        STORE,
        "found.last.seq < seq:\n",
        "False:\n",
        (PROCESSES,),
    ),
    Mutant(
        "a fork builds on what is not synced",
        "session/home.py",
        "            history.log.sync(at)",
        "            pass",
        (f"{CRASHES}::test_a_fork_never_inherits_what_came_after_it",),
    ),
    Mutant(
        "a session is moved while others look for what is needed",
        STORE,
        "            with self.keeping():",
        "            if True:",
        (PROCESSES,),
    ),
    # Blobs.
    Mutant(
        "a pack is not synced before it gets its name",
        PACKS,
        "        self._flush()\n        self._disk.sync(self._fd)\n",
        "        self._flush()\n",
        (CRASHES,),
    ),
    Mutant(
        "the name of a pack is not synced",
        PACKS,
        "        self._disk.sync_folder(self._folder)\n        self._packs.took",
        "        self._packs.took",
        (CRASHES,),
    ),
    Mutant(
        "a pack that a dead process wrote is taken for synced",
        PACKS,
        "            if kind is None and self._relies:\n",
        "            if False:\n",
        (CRASHES,),
    ),
    Mutant(
        "collecting removes packs before what is needed of them is in its new place",
        "store/files/collect.py",
        """    target = ""\n    if wanted:\n""",
        """    target = ""\n"""
        """    for name in rewrite:\n        disk.unlink(os.path.join(folder, name))\n"""
        """    if wanted:\n""",
        (CRASHES, PROCESSES),
    ),
    Mutant(
        "an entry is appended without its blobs",
        "session/appender.py",
        "        if blobs:\n            self._store.put(blobs)\n\n",
        "\n",
        (CRASHES,),
    ),
    # Other processes and threads.
    Mutant(
        "nobody locks",
        DISK,
        '''        """The writer's lock: the kernel frees it when its holder dies. Waits, but not for ever."""\n''',
        "        return\n",
        (PROCESSES, LOCKS),
    ),
    Mutant(
        "nobody looks what others wrote",
        LOGFILE,
        "            elif size != tail.end:\n",
        "            elif False:\n",
        (PROCESSES,),
    ),
    Mutant(
        "a node of another process is no conflict",
        LOGFILE,
        "                self._refuse_conflict(after, alone)\n",
        "                pass\n",
        (PROCESSES,),
    ),
    Mutant(
        "a file that was replaced is not noticed",
        LOGFILE,
        "            if identity(status) != file.identity:\n",
        "            if False:\n",
        (LOCKS,),
    ),
    Mutant(
        "a forked process keeps the locks of its parent's threads",
        "session/appender.py",
        "        self.mutex = threading.RLock()\n        self._is_stale = True\n",
        "        self._is_stale = True\n",
        (PROCESSES,),
    ),
    Mutant(
        "a symbolic link is followed",
        DISK,
        "        flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK\n",
        "        flags |= os.O_CLOEXEC | os.O_NONBLOCK\n",
        (LOCKS,),
    ),
    Mutant(
        "a network file system is not noticed",
        LOGFILE,
        "            self._disk.refuse_remote(folder)\n",
        "",
        (LOCKS,),
    ),
    # What is folded.
    Mutant(
        "a fold is believed although somebody edited it",
        "log/fold.py",
        "    if entry.unverified or entry.state is None:\n",
        "    if entry.state is None:\n",
        (DOUBT,),
    ),
    Mutant(
        "a fold is believed whatever it claims to know",
        "log/fold.py",
        "    return state if state.seq == entry.upto else None\n",
        "    return state\n",
        (DOUBT,),
    ),
    Mutant(
        "a fold is believed to know all before it",
        "session/history.py",
        "            if state is not None and item.seq <= state.seq:\n",
        "            if state is not None:\n",
        (DOUBT,),
    ),
    Mutant(
        "what a fork inherits counts as its own",
        "log/fold.py",
        "    child.models, child.requests, child.peak, child.counts = {}, [], 0, Counts()\n",
        "    child.requests = []\n",
        (FORKS,),
    ),
]


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


def run_tests(src: Path, tests: tuple[str, ...]) -> tuple[int, str]:
    """pytest against a copy of the code: its exit code, and its last words."""
    command = [
        sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider",
        "-o", f"faulthandler_timeout={_PATIENCE_S}", *tests,
    ]  # fmt: skip
    paths = [str(src), str(ROOT)]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True, check=False, text=True, timeout=_PATIENCE_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 1, f"hangs for {_PATIENCE_S} s"
    words = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return done.returncode, words[0] if words else (done.stdout + done.stderr).strip()[-200:]


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
    code, words = run_tests(ROOT / "src", tests)
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
