"""Questions about everything on a machine, as whole processes, beside a bare Python that does nothing."""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench import corpus
from bench.ground import Ground
from bench.measures import Row, ratio, say, take_turns

TITLE = "the catalog"
SESSIONS, MB = 1_500, 400
MANY, MANY_MB = 10_000, 30
LARGE = 12
ROUNDS, FIRSTS = 25, 7
BARE = "python -c pass"
_AGENTS = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "COLUMNS", "PYTHONDONTWRITEBYTECODE")


def measure(ground: Ground) -> list[Row]:
    """The rows of the first index, of warm answers, and of an answer after a session grew."""
    rows = [_version(ground)]
    made = corpus.make(ground.folder / "machine", sessions=SESSIONS, mb=MB)
    os.sync()
    machine = Machine(made)
    rows += _first_screens(machine, f"{MB} MB")
    rows += _during(machine)
    machine.forget()
    rows += _first_index(machine, "few words")
    questions = (
        (f"ls --all, warm, {SESSIONS:,} sessions", ("ls", "--all"), SESSIONS, 5.0),
        ("search, a rare word", ("search", corpus.RARE), 1, 6.0),
        ("search, a common word", ("search", corpus.COMMON), 1, 8.0),
        ("usage by day", ("usage", "--by", "day"), 30, 8.0),
    )
    rows += [_warm(machine, *question) for question in questions]
    rows.append(_grown(machine))
    newest = f"claude-code:{machine.made.newest.stem}"
    rows += [_beside_ls(machine, *words) for words in (("--help",), ("show", newest), ("ls", "--all", "--json"))]
    rows.append(_kept(machine))
    other = Machine(corpus.make(ground.folder / "other", sessions=SESSIONS, mb=MB, words=corpus.MANY))
    os.sync()
    rows += _first_index(other, "many words")
    shutil.rmtree(other.made.home)
    many = Machine(corpus.make(ground.folder / "many", sessions=MANY, mb=MANY_MB))
    many.run("index")
    rows.append(_warm(many, f"ls --all, warm, {MANY:,} sessions", ("ls", "--all"), MANY, 12.0))
    large = Machine(corpus.multiplied(made, ground.folder / "large", times=LARGE))
    rows += _first_screens(large, f"{MB * LARGE / 1000:.0f} GB")
    return rows


class Machine:
    """Somebody's machine, and `turnlog` on it, in one of the folders that the agents worked in."""

    def __init__(self, made: corpus.Corpus) -> None:
        self.made = made
        self.env = {name: value for name, value in os.environ.items() if name not in _AGENTS}
        self.env |= {"HOME": str(made.home), "TURNLOG_HOME": str(made.home / ".turnlog")}
        self.env["PYTHONPYCACHEPREFIX"] = str(made.home / "bytecode")  # compiled once, wherever we run

    def run(self, *words: str) -> str:
        """What a command prints."""
        done = subprocess.run(self.command(*words), env=self.env, cwd=self.made.home, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"turnlog {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def told(self, *words: str) -> str:
        """What a command says besides."""
        return subprocess.run(
            self.command(*words), env=self.env, cwd=self.made.home, capture_output=True, text=True, check=True
        ).stderr

    def call(self, *command: str) -> None:
        """The same, and nobody reads it."""
        quiet = subprocess.DEVNULL
        subprocess.run(command, env=self.env, cwd=self.made.home, stdout=quiet, stderr=quiet, check=True)

    def forget(self) -> None:
        """As if nobody had asked anything before: whoever makes the index is stopped."""
        for pid in filter(str.isdecimal, os.listdir("/proc")):
            try:
                words = Path("/proc", pid, "cmdline").read_bytes().split(b"\0")
                environ = Path("/proc", pid, "environ").read_bytes().split(b"\0")
            except OSError:
                continue  # it has just ended
            home = os.fsencode(f"TURNLOG_HOME={self.env['TURNLOG_HOME']}")
            if words[-3:] == [b"index", b"--background", b""] and home in environ:
                os.kill(int(pid), signal.SIGKILL)
        shutil.rmtree(self.made.home / ".cache", ignore_errors=True)

    def bare(self) -> None:
        """A Python that starts and ends."""
        self.call(sys.executable, "-c", "pass")

    @staticmethod
    def command(*words: str) -> tuple[str, ...]:
        """The program as it is installed."""
        return (str(Path(sys.executable).parent / "turnlog"), *words)


def _version(ground: Ground) -> Row:
    machine = Machine(corpus.Corpus(ground.folder, 0, 0, ground.folder))
    jobs = {"turnlog --version": lambda: machine.call(*machine.command("--version")), BARE: machine.bare}
    times = take_turns(jobs, rounds=ROUNDS, warm=2)
    return ratio("start, whole process", times, "turnlog --version", BARE, bar=3.0)


def _first_screens(machine: Machine, size: str) -> list[Row]:
    """The commands that somebody types first, each on a machine that has never seen one."""
    commands = {"turnlog": machine.command(), "ls": machine.command("ls"), "resume": machine.command("resume")}
    times: dict[str, list[float]] = {BARE: [], **{name: [] for name in commands}}
    for number in range(-1, FIRSTS):
        for name, command in {BARE: (sys.executable, "-c", "pass"), **commands}.items():
            machine.forget()
            start = time.perf_counter()
            machine.call(*command)
            if number >= 0:
                times[name].append(time.perf_counter() - start)
    machine.forget()
    return [
        ratio(f"{name}: first screen on a machine never seen, {size} of sessions", times, name, BARE, bar=15.0)
        for name in commands
    ]


def _during(machine: Machine) -> list[Row]:
    """`turnlog` and `ls` while the index is being made, beside both when it is there."""
    machine.forget()
    machine.call(*machine.command())
    questions = {"turnlog": (), "ls --all": ("ls", "--all")}
    times: dict[str, dict[str, list[float]]] = {name: {"meanwhile": [], "warm": []} for name in questions}
    while "sessions are indexed so far" not in machine.told("ls", "--all"):
        time.sleep(0.1)
    for when in ("meanwhile", "warm"):
        for _ in range(FIRSTS):
            for name, words in questions.items():
                start = time.perf_counter()
                machine.call(*machine.command(*words))
                times[name][when].append(time.perf_counter() - start)
        if when == "meanwhile" and "sessions are indexed so far" not in machine.told("ls", "--all"):
            raise SystemExit("the index was made too soon to be measured")
        machine.call(*machine.command("index"))
    return [
        ratio(f"{name} while the index is being made", found, "meanwhile", "warm", bar=2.0)
        for name, found in times.items()
    ]


def _first_index(machine: Machine, words: str) -> list[Row]:
    """All of it at once; and the memory of all processes that took part."""
    start = time.perf_counter()
    process = subprocess.Popen(
        machine.command("index"), env=machine.env, cwd=machine.made.home, stdout=subprocess.DEVNULL
    )
    peak, processes = 0.0, 0
    while process.poll() is None:
        sizes = [_resident_mb(pid) for pid in _family(process.pid)]
        peak, processes = max(peak, sum(sizes)), max(processes, len(sizes))
        time.sleep(0.01)
    took = time.perf_counter() - start
    if process.returncode:
        raise SystemExit("the first index failed")
    mb = machine.made.size_bytes / 1e6
    index = sum(path.stat().st_size for path in machine.made.home.glob(".cache/turnlog/*.sqlite*")) / 1e6
    subject = f"{mb:.0f} MB, {SESSIONS:,} sessions: {took:.1f} s"
    facts = {"seconds": took, "processes": processes, "index_mb": index}
    return [
        Row(f"first index, tool output included, {words}", subject, f"index of {index:.0f} MB", mb / took, "MB/s", 60.0,
            at_least=True, facts=facts),
        Row(f"first index: room on the disk, {words}", f"{index:.0f} MB", f"{mb:.0f} MB of sessions", index / mb, "x",
            0.5),
        Row(f"first index: memory, {words}", f"{peak:.0f} MB", f"{processes} processes together", peak, "MB", 150.0),
    ]  # fmt: skip


def _family(root: int) -> list[int]:
    """A process and all that it started, as long as they live."""
    found = [root]
    for pid in found:
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                    found += map(int, file.read().split())
        except OSError:
            continue  # it has just ended
    return found


def _resident_mb(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        return 0.0


def _warm(machine: Machine, title: str, words: tuple[str, ...], lines: int, bar: float) -> Row:
    # An answer that is not there must not count as a fast one; it is also what warms the caches.
    answer = machine.run(*words)
    if answer.count("\n") < lines:
        raise SystemExit(f"turnlog {' '.join(words)} says too little: {answer[:500]}")
    subject = f"turnlog {' '.join(words)}"
    jobs = {subject: lambda: machine.call(*machine.command(*words)), BARE: machine.bare}
    return ratio(f"{title}, whole process", take_turns(jobs, rounds=ROUNDS, warm=2), subject, BARE, bar=bar)


def _beside_ls(machine: Machine, *words: str) -> Row:
    """A command that shows what is counted already, beside the list; JSON beside the same as a table."""
    subject = f"turnlog {' '.join(words) if words[0] == 'ls' else words[0]}"
    table = [word for word in words if word != "--json"] if words[0] == "ls" else ["ls"]
    beside = " ".join(table)
    machine.run(*words)
    jobs = {
        subject: lambda: machine.call(*machine.command(*words)),
        beside: lambda: machine.call(*machine.command(*table)),
    }
    times = take_turns(jobs, rounds=ROUNDS, warm=2)
    return ratio(f"{subject} beside {beside}, whole process", times, subject, beside, bar=2.0)


def _kept(machine: Machine) -> Row:
    """What `turnlog keep` takes of what it keeps."""
    machine.run("keep", "claude-code")
    machine.run("keep", "--now")
    [told] = json.loads(machine.run("keep", "--status", "--json"))["agents"]
    source = sum(path.stat().st_size for path in (machine.made.home / ".claude/projects").rglob("*") if path.is_file())
    share = told["bytes"] / source
    subject = f"{told['bytes'] / 1e6:.1f} MB in {told['files']:,} files"
    return Row("kept: room on the disk", subject, f"{source / 1e6:.1f} MB", share, "x", 0.5)


def _grown(machine: Machine) -> Row:
    """`ls` when one session has grown by a turn since the last time, beside one when nothing has."""
    command = machine.command("ls", "--all")
    times: dict[str, list[float]] = {"after it grew": [], "warm": []}
    path = machine.made.newest
    for number in range(-2, ROUNDS):
        for name in list(times)[:: 1 if number % 2 else -1]:
            if name == "after it grew":
                corpus.grow(path)
                # What is younger than two seconds is read once more the next time, which is not what is measured.
                then = time.time() - 60 + number
                os.utime(path, (then, then))
            start = time.perf_counter()
            machine.call(*command)
            if number >= 0:
                times[name].append(time.perf_counter() - start)
    say(f"       {statistics.median(times['after it grew']) * 1e3:.0f} ms after one session grew")
    return ratio("ls --all after one session grew by a turn, whole process", times, "after it grew", "warm", bar=1.5)
