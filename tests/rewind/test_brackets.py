"""Turns take checkpoints by themselves; where they cannot, the turn goes on and the log says why."""

import errno
import os
import threading
from pathlib import Path

import pytest

import turnlog
from tests.faces import location
from turnlog.session import Home
from turnlog.session.interior import interior
from turnlog.store import files
from turnlog.store.files.disk import Disk
from turnlog.thread.home.settings import Settings


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    return folder


@pytest.fixture(params=["files", "memory", "postgres"])
def home(request, tmp_path: Path):
    with turnlog.open(location(request, tmp_path / "home")) as opened:
        yield opened


def kinds(session: turnlog.Session) -> list[str]:
    return [entry.type for entry in session.entries() if entry.type not in ("session", "writer")]


def notes(session: turnlog.Session) -> list[str]:
    return [entry.text for entry in session.entries(kind="note")]


def turn(session: turnlog.Session) -> None:
    with session.turn():
        session.user("go")


# ── when ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_turn_is_between_two_checkpoints(home, place: Path):
    s = home.create(workspace=place)
    turn(s)
    assert kinds(s) == ["checkpoint", "turn", "message", "checkpoint", "turn"]
    assert [c.when for c in s.checkpoints()] == ["begin", "end"]
    assert len({entry.turn for entry in s.entries() if entry.type in ("checkpoint", "turn", "message")}) == 1


def test_no_checkpoints_where_they_are_switched_off_or_there_is_no_workspace(tmp_path: Path, home, place: Path):
    with turnlog.open(tmp_path / "off", checkpoints=False) as off:
        for session in (off.create(workspace=place), home.create()):
            turn(session)
            assert kinds(session) == ["turn", "message", "turn"]


def test_a_refused_workspace_is_noted_once(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=tmp_path)
        turn(s)
        turn(s)
        turn(home.resume(s.id))
        assert notes(s) == [f"turns take no checkpoints: {tmp_path} is never scanned: it is the home folder"]
        assert kinds(s).count("turn") == 6


def test_a_workspace_that_is_gone_is_noted_and_the_turn_goes_on(home, place: Path):
    s = home.create(workspace=place)
    with s.turn():
        s.user("go")
        os.unlink(place / "a.txt")
        place.rmdir()
    assert kinds(s)[-2:] == ["checkpoint", "turn"]  # that it is gone is what the turn did
    turn(s)
    turn(s)
    assert notes(s) == [f"turns take no checkpoints: the folder {place} is gone"]
    assert kinds(s)[-1] == "turn"
    assert len(s.checkpoints()) == 2


class FullDisk(Disk):
    """No room for packs."""

    is_full = False

    def write_once(self, fd: int, data: bytes) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        if self.is_full and data.startswith(b"TURNPACK1"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(fd, data)


def test_a_checkpoint_that_fails_is_noted_and_the_turn_is_kept(tmp_path: Path, place: Path):
    disk = FullDisk()
    with Home(files.connect(str(tmp_path / "home"), disk=disk)) as home:
        s = home.create(workspace=place)
        turn(s)
        with s.turn():
            s.user("go")
            (place / "a.txt").write_text("two\n")
            disk.is_full = True
        assert kinds(s)[-2:] == ["note", "turn"]
        assert notes(s)[-1].startswith("no checkpoint at the end of this turn: ")
        assert "No space left on device" in notes(s)[-1]
        with pytest.raises(turnlog.OutOfSpace):
            s.checkpoint()
        disk.is_full = False
        label = s.checkpoint("what the failed ones saw is not taken for kept")
        (place / "a.txt").write_text("three\n")
        s.rewind(to=label, force=True)
        assert (place / "a.txt").read_text() == "two\n"


def test_a_turn_that_fails_has_its_files_and_its_reason(home, place: Path):
    s = home.create(workspace=place)
    with pytest.raises(ZeroDivisionError), s.turn():
        (place / "a.txt").write_text("half done\n")
        _ = 1 / 0
    assert [item.path for item in s.diff(turn=1)] == ["a.txt"]
    s.rewind(to=s.checkpoints()[0])
    assert (place / "a.txt").read_text() == "one\n"


def test_a_turn_that_begins_in_vain_leaves_no_turn_behind(home, place: Path):
    s = home.create(workspace=place)
    home.delete(s.id)
    with pytest.raises(turnlog.NotFound), s.turn():
        pytest.fail("the turn has begun")
    home.restore(s.id)
    turn(home.resume(s.id))


def test_two_threads_do_not_wait_for_each_other_for_ever(home, place: Path):
    s = home.create(workspace=place)
    s.checkpoint()
    done: list[str] = []

    def many(work) -> None:
        for _ in range(20):
            work()
        done.append("done")

    def look() -> None:
        s.plan_rewind(to=s.checkpoints()[0])

    jobs = [s.checkpoint, lambda: s.tool_result("c", "long " * 30_000), look, lambda: s.diff(s.checkpoints()[0])]
    threads = [threading.Thread(target=many, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(done) == len(jobs)


# ── quota ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("location", ["home", "memory:"])
def test_over_the_quota_there_is_a_clear_error_and_nothing_is_left_behind(tmp_path: Path, place: Path, location: str):
    where = location if location == "memory:" else tmp_path / location
    with turnlog.open(where, quota_bytes=300_000) as home:
        s = home.create(workspace=place)
        (place / "noise").write_bytes(os.urandom(200_000))
        turn(s)
        before, seq = home.disk()["blobs"], s.seq
        (place / "noise").write_bytes(os.urandom(200_000))
        with pytest.raises(turnlog.OutOfSpace, match="over its quota of 300000 bytes") as raised:
            s.checkpoint()
        assert "turnlog gc" in (raised.value.hint or "")
        assert (home.disk()["blobs"], s.seq) == (before, seq)
        turn(s)
        assert ["quota" in text for text in notes(s)] == [True, True]
        with pytest.raises(turnlog.OutOfSpace):
            s.rewind(turns=1)
        kept = (place / "noise").read_bytes()
        home.gc()
        s.refresh()
        s.checkpoint("there is room again")
        assert (place / "noise").read_bytes() == kept


def test_what_is_there_already_needs_no_room(tmp_path: Path, place: Path):
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=place)
        (place / "noise").write_bytes(os.urandom(200_000))
        label = s.checkpoint()
    with turnlog.open(tmp_path / "home", quota_bytes=1) as home:
        s = home.resume(s.id)
        assert s.checkpoint().roots[0].tree == label.roots[0].tree


def test_the_settings_of_a_home_are_those_it_was_opened_with(tmp_path: Path):
    with turnlog.open(tmp_path, max_file_bytes=5, quota_bytes=7, checkpoints=False) as home:
        assert interior(home).settings == Settings(checkpoints=False, max_file_bytes=5, quota_bytes=7)


# ── looking ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_plan_and_a_diff_with_now_write_nothing(home, place: Path):
    s = home.create(workspace=place)
    label = s.checkpoint()
    (place / "a.txt").write_text("two\n")
    (place / "new").mkdir()
    (place / "new/b.txt").write_text("b\n")
    (place / "big").write_bytes(os.urandom(2 << 20))
    seq, disk = s.seq, home.disk()
    plan = s.plan_rewind(to=label)
    found = {item.path: item for item in s.diff(label)}
    assert {step.raw: step.action for step in plan.steps} == {
        b"a.txt": "modify", b"big": "delete", b"new": "delete", b"new/b.txt": "delete",
    }  # fmt: skip
    assert "-one\n+two\n" in found["a.txt"].lines
    assert "+b\n" in found["new/b.txt"].lines
    assert (s.seq, home.disk()) == (seq, disk)


def test_what_was_looked_at_is_still_kept_when_a_checkpoint_is_taken(home, place: Path):
    """A look remembers nothing: else the next checkpoint would rely on contents that nobody has."""
    s = home.create(workspace=place)
    s.checkpoint()
    (place / "a.txt").write_text("two\n")
    s.diff(s.checkpoints()[0])
    label = s.checkpoint()
    (place / "a.txt").write_text("three\n")
    s.rewind(to=label)
    assert (place / "a.txt").read_text() == "two\n"
