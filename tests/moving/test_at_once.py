"""Two who bring the same session at once: what one of them brought is not what somebody else wrote."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.moving.scene import everything, said
from turnlog.session.interior import interior
from turnlog.store import derived
from turnlog.store.memory import MemoryStore
from turnlog.store.memory.log import MemoryLog


class Moments:
    """Counts how often anything is read, and lets things happen in between."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number = 0
        self.plan: dict[int, Callable[[], None]] = {}
        for kind, name in ((MemoryLog, "read"), (MemoryStore, "listing")):
            monkeypatch.setattr(kind, name, self._counting(getattr(kind, name)))

    def _counting(self, read: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        def reading(place: Any, *words: Any, **options: Any) -> Iterator[Any]:
            self.pass_by()
            yield from read(place, *words, **options)

        return reading

    def pass_by(self) -> None:
        self.number += 1
        happens = self.plan.pop(self.number, None)
        if happens is not None:
            happens()


def test_whatever_the_other_sync_brings_meanwhile_is_no_fork(monkeypatch: pytest.MonkeyPatch):
    """One writes here, nobody there: at any moment of our sync; another sync does its work at any later one."""
    moments = Moments(monkeypatch)

    def sync(*when: int) -> int:
        here, there = turnlog.open("memory:"), turnlog.open("memory:")
        with here.create(id="s") as session:
            session.user("one")
            here.sync(there)
            session.user("two")
            moments.number = 0
            moments.plan = dict(zip(when, (lambda: session.user("three"), lambda: here.sync(there)), strict=False))
            rows = [row for rows in here.sync(there) for row in rows]
            assert [row for row in rows if row.error or row.into] == [], when
            count, moments.plan = moments.number, {}
        here.sync(there)
        assert list(derived.ids(interior(here).store)) == list(derived.ids(interior(there).store)) == ["s"], when
        assert everything(here) == everything(there)
        assert said(there, "s")[:2] == ["one", "two"]
        return count

    count = sync()
    assert count > 10
    for when in combinations(range(1, count + 10), 2):
        sync(*when)


def test_what_really_went_on_on_both_sides_is_a_fork_whoever_syncs(monkeypatch: pytest.MonkeyPatch):
    moments = Moments(monkeypatch)

    def sync(when: int) -> int:
        here, there = turnlog.open("memory:"), turnlog.open("memory:")
        with here.create(id="s") as session:
            session.user("one")
        here.sync(there)
        for home, text in ((here, "mine"), (there, "theirs")):
            with home.resume("s") as session:
                session.user(text)
        moments.number = 0
        moments.plan = {when: lambda: here.sync(there)}
        here.sync(there)
        count, moments.plan = moments.number, {}
        here.sync(there)
        for home in (here, there):
            assert sorted(said(home, name) for name in derived.ids(interior(home).store)) == [
                ["one", "mine"],
                ["one", "theirs"],
            ], when
        return count

    for when in range(sync(0) + 10):
        sync(when)


SYNC = """
import sys, turnlog
with turnlog.open(sys.argv[1]) as here, turnlog.open(sys.argv[2]) as there:
    print("ready", flush=True)
    while sys.stdin.readline():
        for rows in here.sync(there):
            for row in rows:
                assert row.error is None, row.error
        print("done", flush=True)
"""


def test_two_processes_that_sync_while_somebody_writes_make_no_forks(tmp_path: Path):
    places = [str(tmp_path / "here"), str(tmp_path / "there")]
    with turnlog.open(places[0]) as here, here.create(id="s") as session:
        session.user("0")
        command = [sys.executable, "-c", SYNC, *places]
        syncs = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) for _ in "ab"
        ]
        for sync in syncs:
            assert sync.stdout.readline() == "ready\n"
        written = 1
        for _ in range(12):
            for sync in syncs:
                sync.stdin.write("go\n")
            until = time.monotonic() + 0.03
            while time.monotonic() < until:
                session.user(str(written))
                written += 1
            for sync in syncs:
                assert sync.stdout.readline() == "done\n"
        for sync in syncs:
            sync.stdin.close()
            assert sync.wait() == 0
            sync.stdout.close()
    with turnlog.open(places[0]) as here, turnlog.open(places[1]) as there:
        here.sync(there)
        assert list(derived.ids(interior(here).store)) == list(derived.ids(interior(there).store)) == ["s"]
        assert said(there, "s") == [str(number) for number in range(written)]
