"""Look for trouble with new seeds for as long as there is time: `make soak SECONDS=3600`.

Crashes, kills, failing disks, racing threads and the property tests in turn. Every round prints its seed; the first
violation ends the soak with exit code 1. `--only crashes --seed 1234` lives one round again.
"""

from __future__ import annotations

import argparse
import errno
import os
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import turnlog  # noqa: E402
from tests.blame import test_model as authors  # noqa: E402
from tests.live.killlab import SCENES  # noqa: E402
from tests.pgbouncer import PROGRAM  # noqa: E402
from tests.pgserver import Server  # noqa: E402
from tests.rewind import randomlife  # noqa: E402
from tests.rewind import test_given_up as checkpoints  # noqa: E402
from tests.session import interruptscenes as scenes  # noqa: E402
from tests.session.randomprogram import run as run_program  # noqa: E402
from tests.store import test_crash_states as states  # noqa: E402
from tests.store import test_io_errors as errors  # noqa: E402
from tests.store import test_threads as threads  # noqa: E402
from tests.store.crashlab import Explorer, Findings, Scenario, fast_folder, go_on, random_life  # noqa: E402
from tests.store.killlab import SESSIONS, check_kills, kill_loop  # noqa: E402
from tests.store.servicelab import lived  # noqa: E402

_LIMIT = 600
_PROPERTIES_S = 120


def _scenario(rng: random.Random) -> Scenario:
    return random_life(rng.getrandbits(32)) if rng.random() < 0.7 else rng.choice(list(states.APPENDING.values()))


def _explore(seed: int, lives: int, look: Callable[[Explorer, Scenario], Findings]) -> str:
    rng = random.Random(seed)
    states = 0
    for _ in range(lives):
        with fast_folder() as folder:
            findings = look(Explorer(folder, rng.getrandbits(32), limit=_LIMIT), _scenario(rng))
        findings.assert_none(seed)
        states += findings.states
    return f"{states} states"


def crashes(seed: int) -> str:
    """A power cut at every moment."""
    model = states.MODELS[seed % 2]
    return _explore(seed, 10, lambda explorer, scenario: explorer.crash(scenario, before=states.create, model=model))


def second_crashes(seed: int) -> str:
    """Another one while the first is being recovered from."""
    return _explore(seed, 3, lambda explorer, scenario: explorer.crash_twice(scenario, before=states.create, lives=20))


def kills_then_crashes(seed: int) -> str:
    """The process dies, another one goes on, the power goes."""

    def look(explorer: Explorer, scenario: Scenario) -> Findings:
        explorer.limit = 30
        return explorer.kill_then_crash(scenario, go_on, before=states.create)

    return _explore(seed, 3, look)


def kills(seed: int) -> str:
    """Writers killed with -9."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="turnlog-soak-") as folder:
        with turnlog.open(folder) as home:
            for session_id in SESSIONS:
                home.create(id=session_id)
        durability = rng.choice(["fsync", "flush"])
        acks = list(kill_loop(folder, seed, kills=150, writers=rng.randrange(2, 6), durability=durability))
        counts = check_kills(folder, acks)
    return f"150 kills, {counts['acknowledged']} acknowledged, {counts['damaged']} damaged"


def services(seed: int) -> str:
    """A service of many tenants, killed and started again, its server as well; through a pooler every other time."""
    rng = random.Random(seed)
    server = Server(max_connections="100")
    try:
        pooled = PROGRAM is not None and bool(seed % 2)
        life = lived(server, pooled=pooled, tenants=1_000, sessions=200, seconds=rng.uniform(10, 30))
    finally:
        server.remove()
    beats = life.hearts["turnlog"]
    late = f"late: {beats['late']:.0f} of {beats['beats']:.0f} beats, because of us {beats['late_ours']:.0f}"
    return f"{life.found.acknowledged} acknowledged, {life.found.tenants} tenants, {late}"


def failing_disks(seed: int) -> str:
    """Calls that fail, at random places."""
    rng = random.Random(seed)
    runs = 0
    for _ in range(200):
        error = rng.choice([errno.ENOSPC, errno.EIO, errno.EACCES, errno.EROFS, errno.EDQUOT])
        number = rng.randrange(1, 130)
        try:
            errors.run(number, error, for_ever=rng.random() < 0.5, attempts=rng.choice([1, 2, 3]))
        except Exception as problem:
            raise AssertionError(f"call {number} with {errno.errorcode[error]}: {problem}") from problem
        runs += 1
    return f"{runs} runs"


def racing_threads(seed: int) -> str:
    """Threads whose syncs fail."""
    random.seed(seed)
    for _ in range(5):
        threads.test_of_what_threads_were_told_nothing_is_lost_when_syncs_fail()
    return "5 races"


def properties(seed: int) -> str:
    """The property tests, with examples nobody has tried."""
    return _tests(seed, "tests/properties")


def failing_calls(seed: int) -> str:
    """Every call of a checkpoint, a rewind, an undo and a collection fails in every way."""
    return _tests(seed, "tests/workspace/test_faults.py")


def broken_streams(seed: int) -> str:
    """Every command with every kind of broken stream."""
    return _tests(seed, "tests/cli/test_streams.py")


def cut_transfers(seed: int) -> str:
    """A transfer is cut at every call of a store and at every change of a disk."""
    return _tests(seed, "tests/moving/test_interrupted.py")


def _tests(seed: int, what: str) -> str:
    command = [
        sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--hypothesis-profile=soak",
        f"--hypothesis-seed={seed}", what,
    ]  # fmt: skip
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, text=True, timeout=_PROPERTIES_S)
    except subprocess.TimeoutExpired:
        return f"nothing in {_PROPERTIES_S} s"
    if done.returncode not in (0, 5):  # 5: there are none
        raise AssertionError(done.stdout[-4_000:])
    return done.stdout.strip().rpartition("\n")[2]


def nested_lives(seed: int) -> str:
    """Two people, two agents in folders inside each other, and kills."""
    rng = random.Random(seed)
    rewinds = 0
    for _ in range(10):
        with tempfile.TemporaryDirectory(prefix="turnlog-soak-") as folder:
            rewinds += randomlife.live(Path(folder), rng.getrandbits(32), 200).rewinds
    return f"10 lives, {rewinds} rewinds"


def blamed_lines(seed: int) -> str:
    """Every line has the author that a model says, whatever several sessions and a person do."""
    rng = random.Random(seed)
    lines = 0
    for _ in range(20):
        with tempfile.TemporaryDirectory(prefix="turnlog-soak-") as folder:
            lines += authors.live(Path(folder), rng.getrandbits(32), 120)
    return f"20 lives, {lines} lines"


def killed_hooks(seed: int) -> str:
    """A hook dies before every change that it makes, and its agent with it or not."""
    scene = random.Random(seed).choice(list(SCENES.values()))
    with tempfile.TemporaryDirectory(prefix="turnlog-soak-") as folder:
        return f"{scene.event}: {scene.live(Path(folder))} deaths"


def given_up(seed: int) -> str:
    """Forks, the trash, purges and collections with a quota: every checkpoint that is listed is whole."""
    rng = random.Random(seed)
    listed = 0
    for _ in range(10):
        with tempfile.TemporaryDirectory(prefix="turnlog-soak-") as folder:
            project = Path(folder) / "project"
            project.mkdir()
            with turnlog.open(Path(folder) / "home", durability="flush") as home:
                life = checkpoints.Life(home, project, rng.getrandbits(32))
                for _ in range(100):
                    life.step()
                    listed += life.check()
    return f"10 lives, {listed} checkpoints read back"


def interrupts(seed: int) -> str:
    """An exception of a signal's handler at every point of something that is done, one point at a time."""
    rng = random.Random(seed)
    name = rng.choice(list(scenes.SCENES))
    error = rng.choice(scenes.errors_for(name))
    scenes.live(name, 0, error)
    points = scenes.live(name, 0, error)
    for at in range(1, points + 1):
        scenes.live(name, at, error)
    return f"{name}: {points} points"


def erasures(seed: int) -> str:
    """Random programs over files and PostgreSQL that erase, with kills in between: nothing of it is found anywhere."""
    from tests.moving.erasinglab import Program
    from turnlog.store.postgres import lease

    lease.TERM_S = 2.0  # so long the lease of one that was killed is waited for
    server = Server()
    done, kills = 0, 0
    try:
        for number in range(10):
            with tempfile.TemporaryDirectory() as folder:
                os.environ["XDG_CACHE_HOME"] = os.path.join(folder, "cache")
                program = Program(seed + number, Path(folder), f"{server.url}?tenant=soak-{seed}-{number}")
                program.run()
            done, kills = done + len(program.erased), kills + program.killed
    finally:
        server.remove()
    return f"10 programs, {done} entries erased, {kills} kills"


def programs(seed: int) -> str:
    """200 random programs of two writers, two homes and a model that sums up."""
    done: Counter[str] = sum((run_program(seed + number) for number in range(200)), Counter())
    return f"{done['compact']} compactions, {done['compact beside another']} beside another writer"


def signals(seed: int) -> str:
    """Real signals, at real moments."""
    rng = random.Random(seed)
    name = rng.choice(list(scenes.SCENES))
    scenes.live_through_signal(name, 0)
    _, longest = scenes.live_through_signal(name, 0)
    hit = sum(scenes.live_through_signal(name, rng.uniform(1e-6, longest))[0] for _ in range(400))
    return f"{name}: {hit} of 400 came in time"


ROUNDS = (
    crashes, second_crashes, kills_then_crashes, kills, failing_disks, racing_threads, failing_calls, properties,
    nested_lives, blamed_lines, killed_hooks, given_up, interrupts, signals, broken_streams, cut_transfers, erasures,
    programs, services,
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, help="live only this round")
    parser.add_argument("--only", choices=[act.__name__ for act in ROUNDS])
    chosen = parser.parse_args()
    warnings.simplefilter("error")
    os.environ.pop("TURNLOG_HOME", None)
    rounds = [act for act in ROUNDS if chosen.only in (None, act.__name__)]
    end = time.monotonic() + chosen.seconds
    count = 0
    while True:
        for act in rounds:
            seed = chosen.seed if chosen.seed is not None else random.SystemRandom().getrandbits(32)
            print(f"{act.__name__:<20} seed {seed:<11} ", end="", flush=True)
            begin = time.monotonic()
            try:
                said = act(seed)
            except Exception as problem:
                print(f"VIOLATION\n{problem}\nagain with: --only {act.__name__} --seed {seed}")
                return 1
            count += 1
            print(f"{time.monotonic() - begin:6.1f} s  {said}", flush=True)
            if time.monotonic() > end:
                print(f"{count} rounds, no violation")
                return 0
        if chosen.seed is not None:
            return 0


if __name__ == "__main__":
    sys.exit(main())
