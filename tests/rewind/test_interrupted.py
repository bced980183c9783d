"""Killed with -9 at every step: the log opens, nothing is lost, and what was half done is finished or taken back."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.store.crashlab import fast_folder
from tests.workspace.hostilelab import ACTS, ONE, Base, World, dies, paths_in, standing_in
from turnlog import Conflict, Home, NotFound, OutOfSpace, Session, Unavailable
from turnlog.rewind import intent as intents

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def base() -> Iterator[Base]:
    """A turn has been done, and nothing else."""
    with fast_folder() as folder:
        yield Base(Path(folder))


@pytest.fixture(scope="module")
def goal(base: Base) -> dict[str, Any]:
    """The files before that turn."""
    world = base.fresh()
    with world.home() as home:
        ACTS["rewind"](home.resume(ONE), home)
    return world.files()


@pytest.fixture(scope="module")
def dead(base: Base) -> list[Base]:
    """The world as each possible death in the middle of that rewind left it: each is died once, and looked at often."""
    return [Base(world.place.parent, world=world) for _, world in kills(base, "rewind")]


def kills(base: Base, act: str) -> Iterator[tuple[int, World]]:
    """The world as each possible death left it."""
    at = 1
    while dies(world := base.fresh(), act, at):
        yield at, world
        at += 1
    assert at > 10


def is_in_log(session: Session) -> bool:
    return any(session.entries(kind="head"))


def whole(home: Home) -> None:
    """Every checkpoint of every session has all its content."""
    for info in home.sessions():
        for point in home.resume(info.id).checkpoints():
            assert paths_in(home, point)


# ── rewinds ───────────────────────────────────────────────────────────────────────────────────────


def finish(world: World, session: Session, base: Base, goal: dict[str, Any]) -> None:
    head = session.finish_rewind()
    assert head is not None
    assert "kept" not in head.files, session.problems()
    assert world.files() == goal
    assert session.messages() == []
    session.undo()
    assert world.files() == base.start
    assert len(session.messages()) == 1


def abort(world: World, session: Session, base: Base, goal: dict[str, Any]) -> None:
    session.finish_rewind(abort=True)
    assert world.files() == base.start
    assert len(session.messages()) == 1
    with pytest.raises(NotFound):
        session.undo()


def edit(world: World, session: Session, base: Base, goal: dict[str, Any]) -> None:
    """The user goes on before anybody looks after it: what they did stays, the rest is done."""
    (world.project / "src/a.py").write_text("the user went on")
    (world.project / "old").mkdir(exist_ok=True)
    (world.project / "old/c").write_text("the user's, too")
    expected = world.files()
    session.finish_rewind()
    done = world.files()
    assert {name: done[name] for name in ("src/a.py", "old/c")} == {
        name: expected[name] for name in ("src/a.py", "old/c")
    }
    rest = ("swap", "link", "src/b.py", "new")
    assert {name: done.get(name) for name in rest} == {name: goal.get(name) for name in rest}
    session.undo()
    done = world.files()
    assert done["src/a.py"] == expected["src/a.py"]
    assert done["old/c"] == expected["old/c"]
    assert {name: done.get(name) for name in rest} == {name: base.start.get(name) for name in rest}


def ask_again(world: World, session: Session, base: Base, goal: dict[str, Any]) -> None:
    """Who does not know of it asks for the same once more: it is finished, and is one rewind, not two."""
    head = next(iter(session.entries(kind="message")))
    session.rewind(before=head)
    assert world.files() == goal
    session.undo()
    assert world.files() == base.start


def go_on(world: World, session: Session, base: Base, goal: dict[str, Any]) -> None:
    """The next turn begins with the files where the rewind was to bring them."""
    with session.turn():
        assert world.files() == goal
    assert not session.interrupted()


@pytest.mark.parametrize("way", [finish, abort, edit, ask_again, go_on], ids=lambda way: way.__name__)
def test_a_rewind_killed_anywhere_is_reported_and_can_be_settled(
    base: Base, dead: list[Base], goal: dict[str, Any], way: Any
):
    counts = {"before": 0, "half": 0, "after": 0, "left": 0}
    for at, left in enumerate(dead):
        world = left.fresh()
        with world.home() as home:
            session = home.resume(ONE)
            assert not [d for d in session.damage if d.seq is not None], at
            if session.interrupted():
                counts["half"] += 1
                counts["left"] += bool(world.leftovers())
                way(world, session, base, goal)
                assert not session.interrupted()
                assert not home.resume(ONE).interrupted()
            elif is_in_log(session):
                counts["after"] += 1
                assert world.files() == goal, at
            else:
                counts["before"] += 1
                assert world.files() == base.start, at
                ACTS["rewind"](session, home)
                assert world.files() == goal, at
            assert not list(world.project.rglob(".turnlog-*")), at
            whole(home)
    print(counts)
    assert counts["before"] and counts["half"] > 20 and counts["left"] > 5


@pytest.mark.parametrize("first", ["finish", "abort"])
def test_settling_it_may_be_killed_as_well(base: Base, half: World, goal: dict[str, Any], first: str):
    again = Base(half.place.parent, world=half)
    for at, world in kills(again, first):
        with world.home() as home:
            home.resume(ONE).finish_rewind(abort=first == "abort")
            assert world.files() == (base.start if first == "abort" else goal), at
            assert not list(world.project.rglob(".turnlog-*")), at


def test_what_is_half_done_is_never_taken_for_somebodys_work(dead: list[Base]):
    """Another session looks at the files while a temporary file lies there: it only reports."""
    seen = 0
    for each in dead:
        world = each.fresh()
        if not list(world.project.rglob(".turnlog-*")):
            continue
        before = world.files()
        with world.home() as home:
            other = home.create(id="other", workspace=world.project)
            names = paths_in(home, other.checkpoint())
            assert all(node.kind == "unknown" for name, node in names.items() if b".turnlog-" in name)
            assert home.resume(ONE).interrupted()
            assert world.files() == before
        seen += 1
    assert seen > 5


def test_the_log_says_what_happened_to_files_as_if_nothing_had_interrupted_it(base: Base, dead: list[Base]):
    world = base.fresh()
    with world.home() as home:
        counts = ACTS["rewind"](home.resume(ONE), home).files
        plan = home.resume(ONE).plan_undo()
    assert len(counts) > 2
    left = next(left for left in dead if "old/c" in left.start)
    for act, expected in (("finish", counts), ("abort", Counter(step.action for step in plan.to_do))):
        with left.fresh().home() as home:
            assert ACTS[act](home.resume(ONE), home).files == expected


# ── checkpoints and collections ───────────────────────────────────────────────────────────────────


def test_a_checkpoint_killed_anywhere_is_whole_or_not_there():
    def change(world: World, session: Session, home: Home) -> None:
        for number in range(3):
            (world.project / f"fresh{number}").write_bytes(os.urandom(3_000))

    with fast_folder() as folder:
        for _, world in kills(Base(Path(folder), change), "checkpoint"):
            with world.home() as home:
                session = home.resume(ONE)
                assert not session.interrupted()
                whole(home)
                point = session.checkpoint("again")
                assert paths_in(home, point).keys() >= {b"fresh0", b"fresh1", b"fresh2"}
                home.gc()
                whole(home)
                assert not world.leftovers()


def test_a_collection_killed_anywhere_costs_nothing_and_is_done_by_the_next():
    def clutter(world: World, session: Session, home: Home) -> None:
        gone = home.create(id="gone", workspace=world.project)
        for number in range(3):
            (world.project / "noise").write_bytes(os.urandom(60_000))
            (session if number == 1 else gone).checkpoint(str(number))
        (world.project / "noise").unlink()
        home.purge("gone")

    with fast_folder() as folder:
        base = Base(Path(folder), clutter)
        for _, world in kills(base, "gc"):
            with world.home() as home:
                whole(home)
                home.gc()
                whole(home)
                assert home.disk()["blobs"] < 70_000
                assert not world.leftovers()


# ── elsewhere, in the middle, gone, full ──────────────────────────────────────────────────────────


@pytest.fixture
def half(dead: list[Base]) -> World:
    """A rewind that was killed in the middle."""
    return next(left for left in dead if "old/c" in left.start).fresh()


def test_one_that_was_interrupted_on_another_machine_is_only_touched_when_asked(
    base: Base, half: World, goal: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    here = intents.this_process()
    monkeypatch.setattr(intents, "this_process", lambda: {**here, "host": "another"})
    before = half.files()
    with half.home() as home:
        session = home.resume(ONE)
        assert session.interrupted()
        for act in ("rewind", "undo"):
            with pytest.raises(Conflict, match=f"interrupted on {here['host']}"):
                ACTS[act](session, home)
        assert half.files() == before
        session.finish_rewind()
        assert half.files() == goal


def test_nobody_touches_files_while_another_process_is_in_the_middle(base: Base, goal: dict[str, Any]):
    world = base.fresh()
    program = (
        "import os, signal, sys\n"
        "from tests.workspace.hostilelab import *\n"
        "def stop(name):\n"
        "    if name == 'symlink': os.kill(os.getpid(), signal.SIGSTOP)\n"
        "world = World(Path(sys.argv[1]))\n"
        "with standing_in(stop):\n"
        "    home = world.home(); rewind(home.resume(ONE), home)\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(world.place)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    try:
        _, status = os.waitpid(other.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        with world.home() as home:
            session = home.resume(ONE)
            before = world.files()
            assert not session.interrupted()
            for act in ("rewind", "finish", "abort"):
                with pytest.raises(Conflict, match=f"process {other.pid} is in the middle"):
                    ACTS[act](session, home)
            assert world.files() == before
            other.send_signal(signal.SIGCONT)
            assert other.wait(60) == 0
            assert world.files() == goal
            session.refresh()
            session.undo()
            assert world.files() == base.start
    finally:
        other.kill()
        other.wait()


def test_a_workspace_that_is_gone_is_named_and_finished_when_it_is_back(half: World, goal: dict[str, Any]):
    half.project.rename(half.place / "moved")
    with half.home() as home:
        session = home.resume(ONE)
        for act in ("finish", "rewind"):
            with pytest.raises(NotFound, match=str(half.project)):
                ACTS[act](session, home)
        session.rewind(to=0, files=False)
        assert session.interrupted()
        (half.place / "moved").rename(half.project)
        session.finish_rewind()
        assert half.files() == goal


def test_a_workspace_that_is_gone_for_good_does_not_keep_a_session_stuck(half: World):
    half.project.rename(half.place / "moved")
    with half.home() as home:
        session = home.resume(ONE)
        session.finish_rewind(abort=True)
        assert not session.interrupted()
        session.rewind(turns=1)
        assert session.messages() == []


def test_a_full_disk_stops_it_and_the_rest_is_done_when_there_is_room(base: Base, goal: dict[str, Any]):
    world = base.fresh()

    def full(name: str) -> None:
        if name == "write":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with world.home() as home, standing_in(full):
        session = home.resume(ONE)
        with pytest.raises(OutOfSpace, match="files were put back"):
            ACTS["rewind"](session, home)
        assert session.interrupted()
        assert (world.project / "src/a.py").read_text() == "changed\n"
    with world.home() as home:
        ACTS["finish"](home.resume(ONE), home)
        assert world.files() == goal


def test_what_may_not_be_written_is_kept_and_named(base: Base):
    world = base.fresh()

    def read_only(name: str) -> None:
        if name in ("create", "mkdir", "unlink", "rename", "symlink", "fchmod", "rmdir"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with world.home() as home, standing_in(read_only):
        session = home.resume(ONE)
        head = ACTS["rewind"](session, home)
        assert set(head.files) == {"kept"}
        problems = {outcome.problem for outcome in session.problems()}
        assert problems == {"Read-only file system", "its folder could not be put back"}
    assert world.files() == base.start


def test_an_error_of_the_last_sync_is_not_taken_for_success(base: Base, goal: dict[str, Any]):
    world = base.fresh()
    syncs: list[int] = []

    def count(name: str) -> None:
        if name == "fsync":
            syncs.append(len(syncs) + 1)
            if syncs[-1] == last:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

    last = 0
    with world.home() as home, standing_in(count):
        ACTS["rewind"](home.resume(ONE), home)
    last, world = syncs.pop(), base.fresh()
    syncs.clear()
    with world.home() as home, standing_in(count):
        session = home.resume(ONE)
        with pytest.raises(Unavailable, match="does not confirm"):
            ACTS["rewind"](session, home)
        assert session.interrupted()
    with world.home() as home:
        ACTS["finish"](home.resume(ONE), home)
    assert world.files() == goal
