"""Checkpoints of 20,000 files beside what git does for the same tree, and beside `tar | zstd -3`."""

import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import zstandard

import turnlog
from bench.ground import Ground
from bench.measures import Row, difference, ratio

TITLE = "checkpoints of 20,000 files, 130 MB, 400 folders"
FILES, FOLDERS, BYTES = 20_000, 400, 130e6
FIRST_ROUNDS, ROUNDS = 3, 11
MANY, WINDOW = 1_000, 20
RULES = """
*.pyc __pycache__/ build/ dist/ *.log .venv/ node_modules/ *.o *.so *.egg-info/ .cache/ *.tmp *.swp /out/ coverage.xml
*.class target/ *.min.js !keep.min.js .idea/ .vscode/ *.bak *.orig docs/_build/ *.sqlite *.db tmp/ logs/** **/gen/*.txt
.DS_Store
"""


def measure(ground: Ground) -> list[Row]:
    tree = ground.folder / "tree"
    grow(tree, FILES, FOLDERS, BYTES)
    rows = [*_first(ground, tree), *_again(ground, tree), *_memory(ground, tree)]
    shutil.rmtree(tree)
    return [*rows, *_many(ground)]


def grow(root: Path, files: int, folders: int, size: float) -> list[Path]:
    """Text like sources: words of one vocabulary in indented lines, most files small and a few large."""
    rng = random.Random(20)
    words = ["".join(rng.choices("etaoinshrdlucmfw_", k=rng.randint(2, 11))) for _ in range(4_000)]
    ends = ["", ":", "()", " = 1", ",", " {", " }", ");"]
    places: list[Path] = []
    for number in range(folders):
        place = root / f"pkg{number % 20:02}" / f"mod{number // 20:02}"
        place.mkdir(parents=True)
        places.append(place)
    made: list[Path] = []
    for number in range(files):
        wanted = max(200.0, rng.expovariate(files / size))
        lines: list[str] = []
        while wanted > 0:
            words_here = " ".join(rng.choices(words, k=rng.randint(2, 9)))
            lines.append("    " * rng.randint(0, 3) + words_here + rng.choice(ends) + "\n")
            wanted -= len(lines[-1])
        made.append(places[number % folders] / f"file{number:05}.py")
        made[-1].write_text("".join(lines))
    (root / ".gitignore").write_text("\n".join(RULES.split()) + "\n")
    settle(root)
    return made


def settle(root: Path) -> None:
    """Nobody trusts the times of files that were changed in the last two seconds; git calls them racy, too."""
    os.sync()
    time.sleep(2.1)


class Git:
    """A scratch repository beside the tree: `git add -A && git write-tree`."""

    def __init__(self, folder: Path, tree: Path) -> None:
        self._env = {**os.environ, "GIT_DIR": str(folder), "GIT_WORK_TREE": str(tree), "GIT_CONFIG_GLOBAL": "/dev/null"}
        self._run("init", "-q")

    def _run(self, *words: str) -> None:
        subprocess.run(["git", *words], env=self._env, check=True, stdout=subprocess.DEVNULL)

    def add(self) -> None:
        self._run("add", "-A")
        self._run("write-tree")


def _clock(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def _first(ground: Ground, tree: Path) -> list[Row]:
    times: dict[str, list[float]] = {"first checkpoint, synced": [], "git": []}
    taken = 0
    for number in range(FIRST_ROUNDS):

        def ours(number: int = number) -> None:
            with turnlog.open(ground.folder / f"first-{number}") as home:
                home.create(workspace=tree).checkpoint()

        def theirs(number: int = number) -> None:
            Git(ground.folder / f"first-{number}.git", tree).add()

        pair = [("first checkpoint, synced", ours), ("git", theirs)]
        for name, job in pair if number % 2 else reversed(pair):
            times[name].append(_clock(job))
        with turnlog.open(ground.folder / f"first-{number}") as home:
            taken = home.disk()["blobs"]
        shutil.rmtree(ground.folder / f"first-{number}")
        shutil.rmtree(ground.folder / f"first-{number}.git")
    packed = _tar(tree)
    return [
        ratio("first checkpoint, against git add -A && git write-tree", times, *times, bar=0.5),
        Row(
            "disk for the first checkpoint, against tar | zstd -3",
            f"{taken / 1e6:.1f} MB",
            f"{packed / 1e6:.1f} MB",
            taken / packed,
            "x",
            1.25,
        ),
    ]


class _Counter:
    def __init__(self) -> None:
        self.size = 0

    def write(self, data: bytes) -> int:
        self.size += len(data)
        return len(data)


def _tar(tree: Path) -> int:
    counter = _Counter()
    squeezer = zstandard.ZstdCompressor(level=3)
    with (
        squeezer.stream_writer(counter, closefd=False) as squeezed,  # pyright: ignore[reportArgumentType]
        tarfile.open(fileobj=squeezed, mode="w|") as archive,
    ):
        archive.add(tree, "tree")
    return counter.size


def _again(ground: Ground, tree: Path) -> list[Row]:
    nothing, ten = "nothing changed", "10 files changed"
    times: dict[str, list[float]] = {name: [] for name in (nothing, f"git, {nothing}", ten, f"git, {ten}")}
    back: dict[str, list[float]] = {"rewind of 10 files": [], "two checkpoints": []}
    victims = sorted(tree.rglob("*.py"))[:: FILES // 10][:10]
    with turnlog.open(ground.folder / "again") as home:
        session = home.create(workspace=tree)
        git = Git(ground.folder / "again.git", tree)
        session.checkpoint()
        git.add()
        for number in range(-1, ROUNDS):
            for path in victims:
                with path.open("a") as file:
                    file.write(f"changed in round {number}\n")
            pair = [(ten, session.checkpoint), (f"git, {ten}", git.add)]
            found = {name: _clock(job) for name, job in (pair if number % 2 else reversed(pair))}
            settle(tree)
            session.checkpoint()  # both look once more at what was too young to trust
            git.add()
            pair = [(nothing, session.checkpoint), (f"git, {nothing}", git.add)]
            found |= {name: _clock(job) for name, job in (pair if number % 2 else reversed(pair))}
            if number >= 0:
                for name, took in found.items():
                    times[name].append(took)
        for number in range(ROUNDS):
            with session.turn():
                session.user("go")
                for path in victims:
                    with path.open("a") as file:
                        file.write(f"turn {number}\n")
            two = _clock(lambda: (session.checkpoint(), session.checkpoint()))
            back["rewind of 10 files"].append(_clock(lambda: session.rewind(turns=1)))
            back["two checkpoints"].append(two)
            if session.seq and victims[0].read_text().endswith(f"turn {number}\n"):
                raise SystemExit("the rewind did not take anything back")
    shutil.rmtree(ground.folder / "again")
    shutil.rmtree(ground.folder / "again.git")
    return [
        ratio(f"checkpoint, {nothing}, against git, incremental", times, nothing, f"git, {nothing}", bar=1.2),
        ratio(f"checkpoint, {ten}, against git, incremental", times, ten, f"git, {ten}", bar=2.5),
        difference("rewind of 10 files, over two checkpoints with nothing changed", back, *back, bar=50.0),
    ]


_PROBE = """
import json, resource, sys, turnlog

def peak():
    try:  # what the system counts for a process may include what its parent had
        return next(int(row.split()[1]) for row in open("/proc/self/status") if row.startswith("VmHWM")) * 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

with turnlog.open(sys.argv[1], max_file_bytes=1 << 40) as home:
    session = home.create(workspace=sys.argv[2])
    rest = peak()
    session.checkpoint()
    print(json.dumps([rest, peak()]))
"""


def _memory(ground: Ground, tree: Path) -> list[Row]:
    rows: list[Row] = []
    large = tree / "large.bin"
    for what in ("first checkpoint", "first checkpoint, with a 2 GB file"):
        if "2 GB" in what:
            with large.open("wb") as file:
                file.truncate(2 << 30)  # it takes no room, and has to be read and compressed like any other
        home = ground.folder / "memory"
        words = [sys.executable, "-c", _PROBE, str(home), str(tree)]
        done = subprocess.run(words, capture_output=True, check=True, encoding="utf-8")
        rest, peak = (value / 1e6 for value in json.loads(done.stdout))
        rows.append(Row(f"memory, {what}", f"{peak:.0f} MB", f"at rest: {rest:.0f} MB", peak - rest, "MB", 149.999))
        shutil.rmtree(home)
    large.unlink()
    return rows


def _many(ground: Ground) -> list[Row]:
    """A smaller tree: that a checkpoint is slower by what lies in the home shows there first."""
    tree = ground.folder / "small"
    paths = grow(tree, 400, 20, 400 * 6_500)
    rng = random.Random(3)
    times: list[float] = []
    changed = 0
    counter = itertools.count()
    with turnlog.open(ground.folder / "many") as home:
        session = home.create(workspace=tree)
        session.checkpoint()
        before = home.disk()["blobs"]
        for number in range(MANY):
            if number in (0, MANY - WINDOW):
                # What is young is read again: both windows begin with as much of it, which is none.
                settle(tree)
                session.checkpoint()
            for path in rng.sample(paths, 3):
                with path.open("a") as file:
                    file.write(f"line {next(counter)}\n")
                changed += path.stat().st_size
            times.append(_clock(session.checkpoint))
        grown = home.disk()["blobs"] - before
        home.gc()
        merged = home.disk()["blobs"] - before
    shutil.rmtree(ground.folder / "many")
    shutil.rmtree(tree)
    early, late = times[:WINDOW], times[-WINDOW:]
    one, other = statistics.median(late), statistics.median(early)
    return [
        Row(
            f"{MANY:,} checkpoints with 3 changed files each: the last against the 10th",
            f"the last {WINDOW}: {one * 1e3:.3g} ms",
            f"around the 10th: {other * 1e3:.3g} ms",
            one / other,
            "x",
            1.1,
            note="on 400 files in 20 folders, where what the home holds weighs more than what the tree does",
        ),
        Row(
            f"{MANY:,} checkpoints with 3 changed files each: disk, against what changed",
            f"{grown / 1e6:.1f} MB ({merged / 1e6:.1f} MB once collected)",
            f"{changed / 1e6:.1f} MB in changed files",
            grown / changed,
            "x",
            1.0,
        ),
    ]
