"""Every call to the system fails once, or from then on: a typed error comes out, and no file is harmed by it."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import turnlog
from tests.store.crashlab import fast_folder
from tests.workspace.hostilelab import (
    ACTS,
    ONE,
    Base,
    Faults,
    World,
    disk_that_tells,
    everything,
    in_parallel,
    standing_in,
)  # fmt: skip
from turnlog import Home, Session, TurnlogError

PREPARE = {
    "checkpoint": lambda world, session, home: (world.project / "fresh").write_bytes(os.urandom(5_000)),
    "rewind": None,
    "undo": lambda world, session, home: ACTS["rewind"](session, home),
    "gc": lambda world, session, home: (home.put_blob(os.urandom(50_000)), session.checkpoint("second")),
}


class Case:
    """An act, what the files are before it, and what they are to be."""

    def __init__(self, act: str, folder: str) -> None:
        self.act = act
        self.base = Base(Path(folder, act), PREPARE[act])
        assert not self.run(self.base.world, Faults())
        self.goal = self.base.world.files()

    def run(self, world: World, faults: Faults) -> str:
        """What came of it: nothing, or the name of a typed error."""
        with standing_in(faults.before):
            try:
                home = world.home(disk_that_tells(faults.before))
                ACTS[self.act](home.resume(ONE), home)
            except TurnlogError as error:
                return type(error).__name__
            finally:
                faults.heal()
        return ""

    def check(self, world: World) -> None:
        """Each file is as it was or as it should be; trying again brings the rest; nothing is left behind."""
        now = world.files()
        for name in self.base.start.keys() | self.goal.keys() | now.keys():
            if not name.rpartition("/")[2].startswith(".turnlog-"):
                allowed = self._allowed(name)
                assert now.get(name) in allowed, f"{name} is {now.get(name)}, not one of {allowed}"
        with world.home() as home:
            session = home.resume(ONE)
            assert not session.damage
            points = session.checkpoints()
            for point in points:
                session.diff(point, points[-1])
            self._again(session, home)
        if self.act in ("rewind", "undo"):
            assert world.files() == self.goal
        assert not [name for name in world.leftovers() if ".turnlog-" in name]

    def _allowed(self, name: str) -> list[Any]:
        start, goal = self.base.start.get(name), self.goal.get(name)
        allowed = [start, goal]
        if start and goal and start[0] != goal[0] and "folder" in (start[0], goal[0]):
            allowed.append(None)  # a folder cannot become a file at once
        if goal and goal[0] == "folder":
            allowed.append(("folder", oct(int(goal[1], 8) | 0o700)))
        return allowed

    def _again(self, session: Session, home: Home) -> None:
        heads = [entry.why for entry in session.entries(kind="head")]
        if self.act == "undo" and heads[-1] == "undo":
            # It is in the log, whatever could not be looked at and was left alone.
            session.rewind(to=next(point for point in session.checkpoints() if point.when == "end"))
            return
        ACTS[self.act](session, home)
        assert not session.interrupted()


@pytest.fixture(scope="module")
def cases() -> Iterator[dict[str, Case]]:
    with fast_folder() as folder:
        yield {act: Case(act, folder) for act in PREPARE}


@pytest.mark.parametrize(
    ("error", "for_ever", "turn"),
    [
        (errno.EIO, False, 0),
        (errno.EACCES, False, 1),
        (errno.ENOSPC, False, 2),
        (errno.EIO, True, 3),
        (errno.ENOSPC, True, 4),
    ],
    ids=["EIO once", "EACCES once", "ENOSPC once", "EIO from then on", "ENOSPC from then on"],
)
@pytest.mark.parametrize("act", PREPARE)
def test_whatever_call_fails_no_file_is_harmed(cases: dict[str, Case], act: str, error: int, for_ever: bool, turn: int):
    case = cases[act]
    problems: list[str] = []
    is_soak = settings.get_current_profile_name() == "soak"
    # The errors take turns, each gets a fifth of the calls; the soak tries every call with each.
    step, at = (1, 0) if is_soak else (5, turn - 4)
    is_over = False
    while not is_over and len(problems) < 10:
        at += step
        if at < 1:
            continue
        world, faults = case.base.fresh(), Faults(at, error=error, for_ever=for_ever)
        try:
            case.run(world, faults)
            case.check(world)
        except Exception as problem:
            problems.append(f"call {at} {faults.failed[:1]}: {type(problem).__name__}: {str(problem)[:500]}")
        is_over = not faults.failed
    print(f"{act}: {at - 1} calls")
    assert at > 20
    assert not problems, f"{len(problems)} of {at}:\n" + "\n".join(problems)


def test_folders_that_may_not_be_written_come_back_with_all_that_is_in_them():
    """Not as root, who may write everywhere."""

    def check_as_somebody(place: Path) -> None:
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        (place / "project/locked/deep").mkdir(parents=True)
        (place / "project/locked/deep/file").write_text("before")
        for folder in ("locked/deep", "locked"):
            (place / "project" / folder).chmod(0o555)
        start = everything(place / "project")
        with turnlog.open(place / "home") as home:
            session = home.create(workspace=place / "project")
            with session.turn():
                session.user("go")
                for folder in ("locked", "locked/deep"):
                    (place / "project" / folder).chmod(0o755)
                shutil.rmtree(place / "project/locked")
                (place / "project/new").mkdir()
                (place / "project/new/file").write_text("agent")
                (place / "project/new").chmod(0o500)
            done = everything(place / "project")
            for _ in range(2):
                session.rewind(turns=1)
                session.undo()
            session.rewind(turns=1)
            assert everything(place / "project") == start
            session.undo()
            assert everything(place / "project") == done

    with fast_folder() as folder:
        Case("undo", folder)  # all that is imported on the way is, by somebody who may read it
        os.chmod(folder, 0o777)
        assert in_parallel(lambda: check_as_somebody(Path(folder))) == [0]
