"""Others work on the same files and in the same home at the same time: nothing is torn, lost or left dangling."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.workspace.hostilelab import System, in_parallel, paths_in, standing_in
from turnlog import Home, Session, TurnlogError
from turnlog.log.entry import Checkpoint
from turnlog.workspace import read, scan

BIG = 3 << 20


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with turnlog.open(tmp_path / "home") as home:
        yield home


def content(home: Home, point: Checkpoint, path: bytes) -> bytes:
    return home.get_blob(paths_in(home, point)[path].digest)


# ── a file that changes while it is read ──────────────────────────────────────────────────────────


@pytest.mark.parametrize("size", [5_000, BIG], ids=["small", "big"])
@pytest.mark.parametrize("change", ["in place", "longer", "shorter", "replaced"])
def test_a_file_that_changes_while_it_is_read_is_read_again(home: Home, place: Path, size: int, change: str):
    """At each call of the scan, one after the other: what is kept is one version or the other, never a mixture."""
    path = place / "file"
    session = home.create(workspace=place)
    new = {"longer": b"n" * (size + 70_000), "shorter": b"n" * 10}.get(change, b"n" * size)
    at, calls = 0, 1
    while calls > at:
        at, calls = at + 1, 0
        path.write_bytes(b"o" * size)

        def before(name: str, at: int = at) -> None:
            nonlocal calls
            calls += 1
            if calls == at and change == "replaced":
                (place.parent / "new").write_bytes(new)
                (place.parent / "new").rename(path)
            elif calls == at:
                with path.open("r+b") as file:
                    file.truncate(len(new))
                    file.write(new)

        with standing_in(before):
            point = session.checkpoint()
        kept = content(home, point, b"file")
        assert kept in (b"o" * size, new), f"{change} at call {at}: {len(kept)} bytes of {set(kept)}"
        assert paths_in(home, point)[b"file"].size == len(kept)
    assert at > 5


def test_a_file_that_never_stands_still_is_reported_and_left_alone(home: Home, place: Path):
    path = place / "log.txt"
    path.write_text("begin")
    (place / "other").write_text("calm")
    session = home.create(workspace=place)

    def before(name: str) -> None:
        if name == "read":
            with path.open("a") as file:
                file.write("and on")

    with standing_in(before):
        point = session.checkpoint()
    assert [item["path"] for item in point.skipped] == ["log.txt"]
    assert "changed" in point.skipped[0]["reason"]
    assert content(home, point, b"other") == b"calm"
    path.write_text("later")
    session.rewind(to=point, force=True)
    assert path.read_text() == "later"


class CoarseClock(System):
    """A file system whose clock stood still: two writes one after the other have the same times."""

    def __init__(self) -> None:
        super().__init__(lambda name: None)
        now = time.time_ns()
        for name in ("stat", "lstat", "fstat"):
            setattr(self, name, self._still(getattr(os, name), now))

    @staticmethod
    def _still(call: Any, now: int) -> Any:
        def still(*args: Any, **options: Any) -> os.stat_result:
            status = call(*args, **options)
            times = {"st_atime_ns": now, "st_mtime_ns": now, "st_ctime_ns": now}
            return os.stat_result(tuple(status), times)

        return still


def test_what_was_only_just_written_is_not_taken_for_known(home: Home, place: Path, monkeypatch: pytest.MonkeyPatch):
    """A young file may change again without its times showing it: it is read again each time."""
    clock = CoarseClock()
    for module in (scan, read):
        monkeypatch.setattr(module, "os", clock)
    path = place / "file"
    session = home.create(workspace=place)
    for text in ("one", "two", "six"):
        path.write_text(text)
        assert content(home, session.checkpoint(), b"file") == text.encode()


@pytest.mark.parametrize("kind", ["modified", "created"])
def test_what_the_user_saves_while_a_file_is_put_back_stays(home: Home, place: Path, kind: str):
    """Until the very last look at it: what they saved is kept, and the rewind says so."""
    path = place / "file"
    when, calls = 0, [""]
    while len(calls) > when:
        when, calls = when + 1, []
        path.unlink(missing_ok=True)
        if kind == "modified":
            path.write_text("before")
        session = home.create(workspace=place)
        with session.turn():
            session.user("go")
            path.write_text("agent")

        def before(name: str, when: int = when, calls: list[str] = calls) -> None:
            calls.append(name)
            if len(calls) == when:
                (place.parent / "saved").write_text("the user's")
                (place.parent / "saved").rename(path)

        with standing_in(before):
            session.rewind(turns=1)
        # Between the last look and what follows it at once there is no way to tell.
        if len(calls) >= when and calls[when - 1] not in ("rename", "unlink"):
            assert path.read_text() == "the user's", f"saved before call {when}, {calls[when - 1]}"
    assert when > 12


# ── somebody else at work ─────────────────────────────────────────────────────────────────────────


@contextmanager
def beside(act: Callable[[], None]) -> Iterator[None]:
    """Somebody who does that without pause."""
    child = os.fork()
    if child == 0:
        try:
            while True:
                act()
        finally:
            os._exit(1)
    try:
        yield
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "it ended by itself"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_checkpoints_beside_somebody_who_writes_renames_and_deletes(home: Home, place: Path):
    rng = random.Random(1)

    def mess() -> None:
        name = place / f"d{rng.randrange(4)}" / f"f{rng.randrange(6)}"
        try:
            match rng.randrange(6):
                case 0 | 1:
                    name.parent.mkdir(exist_ok=True)
                    name.write_bytes(bytes([rng.randrange(256)]) * rng.randrange(200_000))
                case 2:
                    os.truncate(name, rng.randrange(1_000))
                case 3:
                    name.rename(name.with_name(f"f{rng.randrange(6)}"))
                case 4:
                    name.unlink()
                case _:
                    name.parent.rename(place / f"d{rng.randrange(4)}")
        except OSError:
            pass  # it was not there, or not empty: that is the point

    session = home.create(workspace=place)
    with beside(mess):
        points = [session.checkpoint() for _ in range(25)]
    for point in points:
        for path, node in paths_in(home, point).items():
            if node.kind == "file":
                assert len(home.get_blob(node.digest)) == node.size, path
    calm = session.checkpoint()
    (place / "d0").mkdir(exist_ok=True)
    (place / "d0/f0").write_text("now")
    session.rewind(to=points[10], force=True)
    session.undo()
    assert (place / "d0/f0").read_text() == "now"
    session.rewind(to=calm, force=True)


def test_a_rewind_beside_somebody_who_writes_loses_none_of_their_work(home: Home, place: Path):
    """They save versions, never the same twice, beside rewinds: the last one saved is there, or in a checkpoint."""
    path = place / "file"
    path.write_text("before")
    session = home.create(workspace=place)
    log = place.parent / "saved"
    numbers = iter(range(1_000_000))

    def save() -> None:
        text = f"version {next(numbers)}"
        (place.parent / ".tmp").write_text(text)
        (place.parent / ".tmp").rename(path)
        with log.open("a") as file:
            file.write(text + "\n")

    with beside(save):
        for _ in range(12):
            with session.turn():
                session.user("go")
                (place / "mine").write_text(os.urandom(4).hex())
            session.rewind(turns=1)
    last = int(log.read_text().split()[-1])
    found = {content(home, point, b"file").decode() for point in session.checkpoints()} | {path.read_text()}
    assert found & {f"version {last}", f"version {last + 1}"}


# ── gc beside everybody ───────────────────────────────────────────────────────────────────────────


def whole(home: Home) -> int:
    """Every checkpoint of every session has all its content; how many there are."""
    count = 0
    for info in home.sessions():
        session = home.resume(info.id)
        assert not session.damage
        for entry in session.entries():
            for digest in entry.blobs:
                home.get_blob(digest)
        for point in session.checkpoints():
            paths_in(home, point)
            count += 1
    return count


def work_in(folder: Path, place: Path, name: str, rounds: int) -> None:
    """One agent: turns, checkpoints, rewinds, big results, forks that are purged again."""
    with turnlog.open(folder) as home:
        session = home.create(id=name, workspace=place)
        same = b"the same in every session" * 200
        for number in range(rounds):
            with session.turn():
                session.user(f"{number}")
                (place / "noise").write_bytes(os.urandom(3_000))
                (place / "same").write_bytes(same + bytes([number % 3]))
                session.tool_result("c", f"{number % 2} long " * 20_000)
            if number % 3 == 1:
                session.rewind(turns=1)
                session.undo()
            if number % 4 == 2:
                fork = session.fork(id=f"{name}-{number}")
                fork.checkpoint("of the fork")
                _purge(home, session, fork)


def _purge(home: Home, session: Session, fork: Session) -> None:
    fork.close()
    try:
        home.purge(fork.id)
    except TurnlogError as error:
        assert isinstance(error, turnlog.Unavailable), error  # somebody else had the lock for too long


def collect_in(folder: Path, rounds: int) -> None:
    with turnlog.open(folder) as home:
        for _ in range(rounds):
            home.put_blob(os.urandom(2_000))
            home.gc()


def test_collecting_beside_checkpoints_rewinds_forks_and_purges(tmp_path: Path):
    folder = tmp_path / "home"
    turnlog.open(folder).create(id="first")
    places = [tmp_path / f"project{number}" for number in range(3)]
    for place in places:
        place.mkdir()
    jobs = [lambda n=n, place=place: work_in(folder, place, f"s{n}", 8) for n, place in enumerate(places)]
    assert in_parallel(*jobs, lambda: collect_in(folder, 25), lambda: collect_in(folder, 25)) == [0] * 5
    with turnlog.open(folder) as home:
        count = whole(home)
        assert count > 3 * 16
        home.gc()
        assert whole(home) == count


@pytest.mark.parametrize("file", ["mine", "theirs"])
def test_what_the_user_saves_during_a_rewind_is_not_taken_back_by_an_undo(home: Home, place: Path, file: str):
    """Between the checkpoints before and after it, not all that changed was changed by the rewind."""
    for name in ("mine", "theirs", "agents"):
        (place / name).write_text("before")
    session = home.create(workspace=place)
    with session.turn():
        session.user("go")
        for name in ("mine", "agents"):
            (place / name).write_text("agent")

    def before(name: str) -> None:
        if name == "rename":
            (place / file).write_text("the user's")

    with standing_in(before):
        session.rewind(turns=1)
    assert (place / "agents").read_text() == "before"
    kept = (place / file).read_text()
    session.undo()
    assert (place / "agents").read_text() == "agent"
    assert (place / file).read_text() == kept == "the user's" or file == "mine"
    session.redo()
    assert (place / "theirs").read_text() == ("the user's" if file == "theirs" else "before")
