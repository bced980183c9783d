"""The disk stays bounded, and nothing that anybody needs goes."""

import errno
import os
import shutil
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.store.faultlab import FailingDisk
from tests.workspace.hostilelab import paths_in
from turnlog import File, Home, Message, Session
from turnlog.log.entry import Drop
from turnlog.session.interior import interior
from turnlog.store.files import connect
from turnlog.store.files.disk import Disk, Held
from turnlog.workspace import scan
from turnlog.workspace.restore import Restorer


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def turn(session, place: Path, size: int = 200_000) -> bytes:
    data = os.urandom(size)
    with session.turn():
        session.user("go")
        (place / "noise").write_bytes(data)
    return data


def test_purging_a_session_frees_what_only_it_held(tmp_path: Path, place: Path):
    with turnlog.open(tmp_path / "home", checkpoints=True) as home:
        first, second = home.create(workspace=place), home.create(workspace=place)
        kept = turn(second, place)
        for _ in range(4):
            turn(first, place)
        first.tool_result("c", "long " * 30_000)
        home.gc()
        before = home.disk()["blobs"]
        assert home.purge(first.id).freed_bytes > 700_000
        assert home.gc().freed_bytes == 0
        assert home.disk()["blobs"] < before - 700_000
        second.rewind(to=second.checkpoints()[-1], force=True)
        assert (place / "noise").read_bytes() == kept


def test_small_packs_are_written_together(tmp_path: Path, place: Path):
    with turnlog.open(tmp_path / "home", checkpoints=True) as home:
        s = home.create(workspace=place)
        contents = [turn(s, place, 1000) for _ in range(10)]
        folder = tmp_path / "home/blobs"
        assert len(list(folder.glob("*.pack"))) > 5
        home.gc()
        assert len(list(folder.glob("*.pack"))) == 1
        with turnlog.open(tmp_path / "home") as again:
            session = again.resume(s.id)
            ends = [c for c in session.checkpoints() if c.when == "end"]
            session.rewind(to=ends[3])
            assert (place / "noise").read_bytes() == contents[3]


def test_at_a_quota_the_oldest_automatic_checkpoints_go_and_labelled_ones_stay(tmp_path: Path, place: Path):
    with turnlog.open(tmp_path / "home", checkpoints=True) as home:
        s = home.create(workspace=place)
        labelled = turn(s, place)
        label = s.checkpoint("keep me")
        for _ in range(5):
            last = turn(s, place)
        report = home.gc(quota_bytes=500_000)
        assert report.dropped > 0
        assert report.blob_bytes <= 500_000
        s.refresh()
        s.rewind(to=label, force=True)
        assert (place / "noise").read_bytes() == labelled
        assert last != labelled


def test_a_damaged_session_stops_it_rather_than_costing_anything(tmp_path: Path, place: Path):
    with turnlog.open(tmp_path / "home", checkpoints=True) as home:
        s = home.create(workspace=place)
        turn(s, place)
        other = home.create(workspace=place)
        other.tool_result("c", "long " * 30_000)
        other.user("after")
        s.close()
    path = next(p for p in (tmp_path / "home/sessions").iterdir() if other.id in p.name)
    lines = path.read_bytes().split(b"\n")
    lines[2] = lines[2][:50]
    path.write_bytes(b"\n".join(lines))
    with turnlog.open(tmp_path / "home") as home:
        before = home.disk()["blobs"]
        with pytest.raises(turnlog.Corrupt, match="nothing was collected"):
            home.gc()
        assert home.disk()["blobs"] == before


def test_nothing_is_collected_while_somebody_is_writing_a_checkpoint(tmp_path: Path, place: Path):
    """Between the pack and the entry that refers to it, only the lock keeps the content."""
    with turnlog.open(tmp_path / "home") as home, turnlog.open(tmp_path / "home") as other:
        s = home.create(workspace=place)
        (place / "noise").write_bytes(os.urandom(1000))
        import threading

        done = threading.Event()
        with interior(home).store.keeping():
            with interior(home).store.add() as add:
                name = add(b"on its way")
            collector = threading.Thread(target=lambda: (other.gc(), done.set()))
            collector.start()
            assert not done.wait(0.3)
            s.append(turnlog.Message(role="user", blocks=[turnlog.File(blob=name)]))
        collector.join()
        assert home.get_blob(name) == b"on its way"


def test_a_pack_that_cannot_be_read_is_kept(tmp_path: Path, place: Path):
    """Nobody can say what is in it, and a repair may bring it back."""
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=place)
        (place / "a").write_text("a" * 1000)
        s.checkpoint("one")
    (pack,) = (tmp_path / "home/blobs").glob("*.pack")
    data = pack.read_bytes()
    pack.write_bytes(b"x" * len(data))
    with turnlog.open(tmp_path / "home") as home:
        with pytest.raises(turnlog.Corrupt):
            home.gc()
        home.purge(s.id)
        home.gc()
    assert pack.exists()


# ── what other processes do meanwhile ─────────────────────────────────────────────────────────────


def test_what_somebody_collected_is_kept_anew_and_not_taken_for_known(tmp_path: Path, place: Path, monkeypatch):
    """A scan remembers what it saw; what it saw may have gone with the session that held it."""
    monkeypatch.setattr(scan, "YOUNG_NS", -(1 << 60))  # nothing is too young to be relied on
    (place / "sub").mkdir()
    for name in ("a", "sub/b"):
        (place / name).write_text(name * 500)
    clock = count(1_700_000_000_000).__next__  # two checkpoints of one millisecond have no order
    with turnlog.open(tmp_path / "home", clock=clock) as home, turnlog.open(tmp_path / "home", clock=clock) as other:
        first = home.create(workspace=place)
        first.checkpoint()
        other.purge(first.id)
        other.gc()
        assert other.disk()["blobs"] == 0
        for session in (home.create(workspace=place), other.create(workspace=place)):
            point = session.checkpoint()
            (place / "a").write_text("gone")
            session.rewind(to=point)
            assert (place / "a").read_text() == "a" * 500


def test_a_blob_that_somebody_moved_to_another_pack_is_found_there(tmp_path: Path, place: Path):
    with turnlog.open(tmp_path / "home") as home, turnlog.open(tmp_path / "home") as other:
        s = home.create(workspace=place)
        names = [home.put_blob(b"%d" % number * 500) for number in range(4)]
        for name in names:
            s.append(turnlog.Message(role="user", blocks=[turnlog.File(blob=name)]))
            assert home.get_blob(name)
        assert other.gc().blob_bytes
        assert len(list((tmp_path / "home/blobs").glob("*.pack"))) == 1
        assert [home.get_blob(name) for name in names] == [b"%d" % number * 500 for number in range(4)]
        assert [b"".join(interior(home).store.stream(name)) for name in names] == [
            home.get_blob(name) for name in names
        ]


def test_nobody_refers_to_a_blob_that_somebody_collected(tmp_path: Path, place: Path):
    with turnlog.open(tmp_path / "home") as home, turnlog.open(tmp_path / "home") as other:
        s = home.create(workspace=place)
        name = home.put_blob(b"nobody refers to this yet")
        other.gc()
        with pytest.raises(turnlog.NotFound):
            s.append(turnlog.Message(role="user", blocks=[turnlog.File(blob=name)]))
        assert home.put_blob(b"nobody refers to this yet") == name
        s.append(turnlog.Message(role="user", blocks=[turnlog.File(blob=name)]))
        other.gc()
        assert home.get_blob(name)


# ── damage, and little room ───────────────────────────────────────────────────────────────────────


def test_a_damaged_blob_keeps_its_pack_and_the_rest_is_collected(tmp_path: Path, place: Path):
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=place)
        for number in range(3):
            (place / "noise").write_bytes(os.urandom(30_000))
            s.checkpoint(str(number))
        home.put_blob(os.urandom(200_000))
    folder = tmp_path / "home/blobs"
    damaged = next(pack for pack in folder.iterdir() if 30_000 < pack.stat().st_size < 100_000)
    data = bytearray(damaged.read_bytes())
    data[20_000] ^= 1
    damaged.write_bytes(data)
    with turnlog.open(tmp_path / "home") as home:
        report = home.gc()
        assert report.freed_bytes > 100_000
        assert damaged.read_bytes() == data
        bad = 0
        for number, point in enumerate(home.resume(s.id).checkpoints()):
            try:
                home.resume(s.id).rewind(to=point, force=True)
            except turnlog.Corrupt:
                bad += 1
            assert number >= 0
        assert bad <= 1
        assert home.gc().blobs == 0


def test_what_nobody_needs_goes_first_to_make_room_for_the_rest(tmp_path: Path, place: Path):
    """A full disk is when people collect: nothing can be written until something is gone."""
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=place)
        for number in range(3):
            (place / "noise").write_bytes(os.urandom(30_000))
            s.checkpoint(str(number))
        home.put_blob(os.urandom(200_000))
    disk = FailingDisk(at=1, error=errno.ENOSPC, for_ever=True, only="write_once")
    full = turnlog.Home(connect(str(tmp_path / "home"), disk=disk))
    with pytest.raises(turnlog.OutOfSpace):
        full.gc()
    assert full.disk()["blobs"] < 150_000
    disk.heal()
    full.gc()
    assert len(list((tmp_path / "home/blobs").iterdir())) == 1


def test_the_space_goes_back_to_the_file_system(tmp_path: Path, place: Path):
    def used() -> int:
        return sum(path.stat().st_blocks * 512 for path in (tmp_path / "home").rglob("*") if path.is_file())

    with turnlog.open(tmp_path / "home") as home:
        keep, gone = home.create(workspace=place), home.create(workspace=place)
        for number in range(6):
            (place / "noise").write_bytes(os.urandom(300_000))
            (gone if number else keep).checkpoint(str(number))
        before = used()
        home.purge(gone.id)
        home.gc()
        assert before - used() > 1_400_000
        assert used() < 500_000


def test_an_interrupted_rewind_keeps_what_it_needs_at_any_quota(tmp_path: Path, place: Path, monkeypatch):
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=place)
        (place / "noise").write_bytes(before := os.urandom(50_000))
        turn(s, place, 50_000)
        monkeypatch.setattr(Restorer, "run", _die)
        with pytest.raises(KeyboardInterrupt):
            s.rewind(turns=1)
        monkeypatch.undo()
        home.gc(quota_bytes=1)
        home.resume(s.id).finish_rewind()
        assert (place / "noise").read_bytes() == before


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_flipped_byte_anywhere_costs_what_it_hit_and_is_never_written(tmp_path: Path, place: Path):
    """Every part of every pack, one after the other: a file is put back as it was, or kept and named."""
    names = [f"f{number}" for number in range(4)]
    before = {name: name.encode() * 300 + os.urandom(4_000) for name in names}
    for name in names:
        (place / name).write_bytes(before[name])
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=place)
        with s.turn():
            ask = s.user("go")
            for name in names:
                (place / name).write_bytes(b"changed")
    kept = refused = 0
    for pack in (tmp_path / "home/blobs").iterdir():
        data = pack.read_bytes()
        for offset in range(0, len(data), 997):
            pack.write_bytes(data[:offset] + bytes([data[offset] ^ 0x10]) + data[offset + 1 :])
            with turnlog.open(tmp_path / "home") as home:
                session = home.resume(s.id)
                try:
                    session.rewind(before=ask, force=True)
                except turnlog.TurnlogError as error:
                    refused += 1
                    assert isinstance(error, (turnlog.Corrupt, turnlog.NotFound))
                for outcome in session.problems():
                    kept += 1
                    assert "sha256:" in outcome.problem
                for name in names:
                    assert (place / name).read_bytes() in (before[name], b"changed")
            pack.write_bytes(data)
            for name in names:
                (place / name).write_bytes(b"changed")
    assert kept


def test_a_session_cannot_give_up_what_another_one_holds(tmp_path: Path, place: Path):
    with turnlog.open(tmp_path / "home") as home:
        s, other = home.create(workspace=place), home.create(workspace=place)
        (place / "a").write_text("a" * 500)
        point = s.checkpoint("mine")
        other.append(Drop(checkpoints=[point.id]))
        home.gc()
        (place / "a").write_text("b")
        s.rewind(to=point)
        assert (place / "a").read_text() == "a" * 500


def test_a_damaged_memory_of_the_last_scan_is_not_relied_on(tmp_path: Path, place: Path, monkeypatch):
    """It is not synced: after a crash, any part of it may be zeros."""
    monkeypatch.setattr(scan, "YOUNG_NS", -(1 << 60))
    for number in range(20):
        (place / f"file{number}").write_text(str(number) * 100)
    with turnlog.open(tmp_path / "home") as home:
        session = home.create(workspace=place)
        whole = paths_in(home, session.checkpoint())
        (seen,) = (tmp_path / "home/derived").iterdir()
        data = seen.read_bytes()
        for start in range(0, len(data), 64):
            seen.write_bytes(data[:start] + bytes(64) + data[start + 64 :])
            assert paths_in(home, session.checkpoint()) == whole


# ── what is given up ──────────────────────────────────────────────────────────────────────────────────


def test_a_fork_knows_that_a_checkpoint_of_its_parent_was_given_up(tmp_path: Path, place: Path):
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=place)
        for _ in range(3):
            turn(s, place)
        fork = s.fork().fork()
        turn(fork, place)
        assert home.gc(quota_bytes=0).dropped > 0
        for session in (home.resume(s.id), home.resume(fork.id)):
            assert session.checkpoints() == []
            assert session.rewind(to=2).files == {}
        assert home.gc().freed_bytes == 0


def test_checkpoints_of_a_deleted_session_are_not_given_up_behind_its_back(tmp_path: Path, place: Path):
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=place)
        data = turn(s, place)
        s.close()
        home.delete(s.id)
        home.gc(quota_bytes=0)
        home.gc()
        home.restore(s.id)
        s = home.resume(s.id)
        (place / "noise").write_bytes(b"")
        s.rewind(to=s.checkpoints()[-1], force=True)
        assert (place / "noise").read_bytes() == data


def test_an_undo_whose_files_were_given_up_moves_the_conversation(tmp_path: Path, place: Path):
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=place)
        turn(s, place)
        s.rewind(turns=1)
        home.gc(quota_bytes=0)
        s = home.resume(s.id)
        assert "only the conversation" in s.plan_undo().note
        s.undo()
        assert len(s.messages()) == 1
        assert not (place / "noise").exists()


def test_what_a_given_up_turn_changed_is_not_taken_for_sure(tmp_path: Path, place: Path):
    """Nobody can tell any more what was the session's and what was the user's."""
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=place)
        label = s.checkpoint("before")
        turn(s, place)
        (place / "mine.txt").write_text("the user's")
        turn(s, place)
        s.checkpoint("after")
        home.gc(quota_bytes=0)
        s = home.resume(s.id)
        plan = s.plan_rewind(to=label)
        assert {step.raw: step.action for step in plan.steps} == {b"mine.txt": "conflict", b"noise": "conflict"}
        s.rewind(to=label)
        assert (place / "mine.txt").exists()


def test_contents_that_were_collected_are_kept_again(tmp_path: Path, place: Path):
    """A scan that remembers a digest must not rely on it when the content behind it went with another session."""
    with turnlog.open(tmp_path / "home") as home:
        (place / "noise").write_bytes(b"the same as ever " * 10_000)
        os.utime(place / "noise", (1, 1))
        first = home.create(workspace=place)
        first.checkpoint()
        home.purge(first.id)
        home.gc()
        assert home.disk()["blobs"] == 0
        second = home.create(workspace=place)
        label = second.checkpoint()
        (place / "noise").unlink()
        second.rewind(to=label)
        assert (place / "noise").read_bytes() == b"the same as ever " * 10_000


def test_who_gives_up_checkpoints_does_not_wait_for_itself(tmp_path: Path, place: Path):
    """The entry that says so may come with a fold, and a fold with a blob."""
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=place)
        s.set("plan", ["x" * 200] * 200)
        turn(s, place)
        for number in range(300):
            s.append(*(turnlog.Note(text=f"{number}") for _ in range(1)))
        s.close()
        done = threading.Event()
        collector = threading.Thread(target=lambda: (home.gc(quota_bytes=0), done.set()), daemon=True)
        collector.start()
        assert done.wait(60)
        assert home.resume(s.id).checkpoints() == []


def test_what_a_crash_left_and_somebody_sealed_off_does_not_stop_it(tmp_path: Path):
    with turnlog.open(tmp_path / "home") as home:
        with home.create(id="s") as session:
            session.user("one")
            session.append(turnlog.Note(text="two"), turnlog.Note(text="three"))
            session.user("torn")
        path = tmp_path / "home" / "sessions" / "s.jsonl"
        path.write_bytes(path.read_bytes()[:-40])
        home.put_blob(b"nobody needs this")
        with home.resume("s") as session:
            session.user("four")
        assert home.gc().blobs == 1


class Watched(Disk):
    """Knows what is done while everybody is kept out, and lets something happen just before."""

    def __init__(self) -> None:
        self.before: Callable[[], object] | None = None
        self.alone: Held | None = None
        self.written = self.read = 0

    def hold(self, path: str, *, shared: bool = False, create: bool = False) -> Held:
        is_alone = not shared and path.endswith(".blobs.lock")
        if is_alone and self.before is not None:
            happens, self.before = self.before, None
            happens()
        held = super().hold(path, shared=shared, create=create)
        if is_alone:
            self.alone = held
        return held

    def write_once(self, fd: int, data: Any) -> int:
        if self.alone is not None and not self.alone.closed:
            self.written += len(data)
        return os.write(fd, data)

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        data = os.pread(fd, length, offset)
        if self.alone is not None and not self.alone.closed:
            self.read += len(data)
        return data


def _sparse(home: Home, place: Path) -> Session:
    """A session whose packs are half garbage."""
    s, other = home.create(workspace=place), home.create(workspace=place)
    for number in range(4):
        for name in ("mine", "theirs"):
            (place / name).write_bytes(os.urandom(400_000))
        other.checkpoint()
        (place / "theirs").unlink()
        s.checkpoint(f"{number}")
    for number in range(300):
        s.note(f"{number} " + "x" * 1000)
    interior(home).store.purge(other.id)  # which leaves the blobs
    return s


def test_nobody_is_kept_out_for_long(tmp_path: Path, place: Path):
    """What takes long is done beside everybody else: reading logs and trees, writing what stays."""
    disk = Watched()
    home = Home(connect(str(tmp_path / "home"), disk=disk))
    s = _sparse(home, place)
    disk.written = disk.read = 0
    assert home.gc().freed_bytes > 1_000_000
    assert disk.alone is not None
    assert disk.written == 0
    assert disk.read < 20_000
    for point in s.checkpoints():
        s.diff(point)


def test_what_somebody_finds_and_needs_meanwhile_stays(tmp_path: Path, place: Path):
    """Between looking and removing, agents need blobs again that nobody needed: in old logs, new ones, deleted ones."""
    disk = Watched()
    home = Home(connect(str(tmp_path / "home"), disk=disk))
    s = _sparse(home, place)
    first, second, third = (home.put_blob(os.urandom(3_000)) for _ in range(3))
    with turnlog.open(tmp_path / "home") as agents:

        def happens() -> None:
            agents.resume(s.id).append(Message(role="user", blocks=[File(blob=first)]))
            agents.create(id="new").append(Message(role="user", blocks=[File(blob=second)]))
            agents.create(id="gone").append(Message(role="user", blocks=[File(blob=third)]))
            agents.delete("gone")

        disk.before = happens
        home.gc()
        assert all(interior(agents).store.has(name) and agents.get_blob(name) for name in (first, second, third))
        assert home.gc().blobs == 0


def test_a_checkpoint_that_reuses_what_nobody_needed_stays_whole(tmp_path: Path, place: Path):
    disk = Watched()
    home = Home(connect(str(tmp_path / "home"), disk=disk))
    s, other = home.create(workspace=place), home.create(workspace=place)
    (place / "deep").mkdir()
    (place / "deep" / "file").write_bytes(os.urandom(50_000))
    other.checkpoint()
    home.purge(other.id)
    disk.before = lambda: s.checkpoint("found again")
    home.gc()
    shutil.rmtree(place / "deep")
    [point] = s.checkpoints()
    s.rewind(to=point, force=True)
    assert (place / "deep" / "file").stat().st_size == 50_000
