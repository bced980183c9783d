"""What hooks leave on the disk: a checkpoint at both ends of each turn and after each tool, beside what was changed."""

import random
import shutil
from pathlib import Path

import turnlog
from bench.ground import Ground
from bench.measures import Row
from turnlog.machine.process import this_process
from turnlog.rewind.coverage import Coverage
from turnlog.rewind.relay import TurnRelay, worker_of
from turnlog.session.interior import interior
from turnlog.thread.appender import appending
from turnlog.thread.space.limit import keep_limit

TITLE = "what hooks leave on the disk, 2,000 files"
FILES, SIZE = 2_000, 10_000
TURNS, TOOLS = 100, 5
BAR = 3.0


def measure(ground: Ground) -> list[Row]:
    return [_row(ground, 40, "in 40 folders"), _row(ground, 1, "in one folder")]


def _row(ground: Ground, folders: int, what: str) -> Row:
    """Random bytes: nothing of what is changed can be made smaller."""
    rng = random.Random(folders)
    place, store = ground.folder / "live", ground.folder / "live-home"
    files = [place / f"{number % folders:02}" / f"{number}.bin" for number in range(FILES)]
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(rng.randbytes(SIZE))
    with turnlog.open(store, durability="flush") as home:
        session = home.create(workspace=place)
        _tell(home, session.id, "begin", "first")
        before = sum(home.disk().values())
        for number in range(TURNS):
            _turn(home, session.id, f"t{number}", rng, files)
        kept = sum(home.disk().values()) - before
    shutil.rmtree(place)
    shutil.rmtree(store)
    changed = TURNS * TOOLS * SIZE
    return Row(
        f"kept of {TURNS} turns with {TOOLS} tools each, {what}",
        f"on the disk: {kept / 1e6:.1f} MB",
        f"changed: {changed / 1e6:.1f} MB",
        kept / changed,
        "x",
        BAR,
        note="random bytes, which nobody can compress; logs included",
    )


def _turn(home: turnlog.Home, session: str, turn: str, rng: random.Random, files: list[Path]) -> None:
    _tell(home, session, "begin", turn)
    for _ in range(TOOLS):
        rng.choice(files).write_bytes(rng.randbytes(SIZE))
        _tell(home, session, "record_tool", turn)
    _tell(home, session, "end", turn)
    keep_limit(interior(home).store, 10**12)


def _tell(home: turnlog.Home, session: str, event: str, turn: str) -> None:
    """What a hook does, without its process."""
    store = interior(home).store
    with appending(store, store.open(session)) as appender:
        appender.writes_no_writer_entry = True
        relay = TurnRelay(store, appender, Coverage(store, appender.history, interior(home).settings))
        getattr(relay, event)(*((turn, worker_of(dict(this_process()))) if event == "begin" else (turn,)))
