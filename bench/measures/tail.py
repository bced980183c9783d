"""The last 50 messages of a long session, beside those of a short one."""

import itertools
from pathlib import Path

import turnlog
from bench.ground import LONG, Ground
from bench.measures import Row, difference, take_turns

TITLE = "last 50 messages of 100,000 against of 100"
ROUNDS = 60
RESUMED, EACH = 50, 20


def measure(ground: Ground) -> list[Row]:
    resumed = ground.folder / "resumed"
    with ground.building(resumed) as home:
        ground.fill(home.create(id="long", workspace=resumed), LONG - RESUMED * EACH)
        ground.fill(home.create(id="short", workspace=resumed), 100)
    # A program that resumes for every turn must not make the session slower for the next one.
    for _ in range(RESUMED):
        with ground.building(resumed) as home:
            ground.fill(home.resume("long"), EACH)
    return [_row(TITLE, ground.long), _row(f"{TITLE}, resumed {RESUMED} times for {EACH} messages each", resumed)]


def _row(title: str, folder: Path) -> Row:
    def last(name: str) -> list[turnlog.Message]:
        with turnlog.open(folder) as home:
            return home.resume(name).messages(last=50)

    for name in ("long", "short"):
        found = last(name)
        if len(found) != 50 or any(b.parent != a.seq for a, b in itertools.pairwise(found)):
            raise SystemExit(f"the last 50 messages of the {name} session are not there")
    times = take_turns({"of 100,000": lambda: last("long"), "of 100": lambda: last("short")}, rounds=ROUNDS)
    return difference(title, times, "of 100,000", "of 100", bar=1.0)
