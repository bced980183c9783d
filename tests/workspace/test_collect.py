"""The disk stays bounded, and nothing that anybody needs goes."""

import os
from pathlib import Path

import pytest

import turnlog


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
        home.purge(first.id)
        report = home.gc()
        assert report.freed_bytes > 700_000
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
        with home.store.keeping():
            with home.store.pack() as pack:
                name = pack.add(b"on its way")
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
