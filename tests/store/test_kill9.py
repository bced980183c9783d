"""Processes killed with -9 while they write: what they were told is in the log, and nothing is mixed up."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

import turnlog
from tests.store.killlab import SESSIONS, check_kills, kill_loop
from turnlog.session.interior import interior


@pytest.mark.parametrize(
    ("durability", "writers", "kills"),
    [("fsync", 3, 45), ("flush", 4, 45)],
)
def test_what_was_acknowledged_survives_the_death_of_its_writer(
    tmp_path: Path, durability: str, writers: int, kills: int
):
    seed = random.randrange(1 << 32)
    home = turnlog.open(tmp_path)
    for session_id in SESSIONS:
        home.create(id=session_id)
    stop = threading.Event()
    problems: list[str] = []
    reader = threading.Thread(target=watch, args=(tmp_path, stop, problems))
    reader.start()
    try:
        acks = list(kill_loop(str(tmp_path), seed, kills=kills, writers=writers, durability=durability))
    finally:
        stop.set()
        reader.join()
    assert not problems
    assert len(acks) > kills
    counts = check_kills(str(tmp_path), acks)
    print(f"seed {seed}: {kills} kills, {counts}")


def watch(folder: Path, stop: threading.Event, problems: list[str]) -> None:
    """A reader beside it all: never blocked, and what it has seen stays where it was."""
    home = turnlog.open(folder)
    seen: dict[str, int] = {}
    while not stop.is_set():
        for item in interior(home).store.open("one", read_only=True).read(after=max(seen.values(), default=0)):
            if isinstance(item, turnlog.Entry):
                if item.id in seen:
                    problems.append(f"{item.id} is there twice")
                seen[item.id] = item.seq
        stop.wait(0.05)
    final = {entry.id: entry.seq for entry in home.resume("one").entries()}
    problems += [f"{entry_id} went away" for entry_id, seq in seen.items() if final.get(entry_id) != seq]
