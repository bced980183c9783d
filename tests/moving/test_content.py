"""Whatever is missing or damaged where a session comes from: no checkpoint arrives with holes, and the rest does."""

import errno
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import turnlog
from tests.moving.scene import KINDS, lines, make
from tests.pgserver import Server
from turnlog.log.entry import Checkpoint
from turnlog.session import Home
from turnlog.session.interior import interior
from turnlog.store import derived
from turnlog.store.files import connect
from turnlog.store.files.disk import Disk
from turnlog.workspace.tree import FOLDER, decode_tree


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "sub/deep").mkdir(parents=True)
    for name in ("top", "sub/one", "sub/two", "sub/deep/three"):
        (folder / name).write_bytes(name.encode() * 50 + os.urandom(500))
    return folder


@pytest.fixture(params=KINDS)
def there(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    server: Server | None = request.getfixturevalue("postgres") if request.param == "postgres" else None
    with make(request.param, tmp_path, server) as home:
        yield home


def blobs_of(home: Home, tree: str) -> Iterator[tuple[str, str]]:
    """Every path of a checkpoint with its blob, the root last."""
    for name, node in decode_tree(home.get_blob(tree)).items():
        path = os.fsdecode(name)
        if node.kind == FOLDER:
            yield from ((f"{path}/{below}".rstrip("/"), blob) for below, blob in blobs_of(home, node.digest))
        else:
            yield path, node.digest
    yield "", tree


def damage(home: Home, blob: str, how: str) -> None:
    """A store in memory has blobs one by one."""
    if how == "missing":
        del interior(home).store._blobs[blob]
    else:
        interior(home).store._blobs[blob] = b"something else"


PATHS = ("top", "sub/one", "sub/deep/three", "sub/deep", "sub", "", "rules")


@pytest.mark.parametrize("how", ["missing", "damaged"])
@pytest.mark.parametrize("path", PATHS)
def test_no_checkpoint_arrives_with_holes(project: Path, tmp_path: Path, path: str, how: str):
    """Whatever of it is lost: it arrives as given up, the others whole, and collecting goes on there."""
    (project / ".git/info").mkdir(parents=True)
    (project / ".git/info/exclude").write_text("*.log")
    here, there = make("memory", tmp_path), make("memory", tmp_path)
    with here.create(id="s", workspace=project) as s:
        first = s.checkpoint("first")
        for name in ("top", "sub/one", "sub/deep/three"):
            (project / name).write_bytes(os.urandom(500))
        second = s.checkpoint("second")
        s.user("a long one " * 20_000)
    root = first.roots[0]
    (exclude,) = {root.rules}
    blob = exclude if path == "rules" else dict(blobs_of(here, root.tree))[path]
    is_shared = path == "rules"  # both have the same
    damage(here, blob, how)
    [row] = here.push(there)
    assert row.outcome == "new" and row.error is None
    assert row.problems and any(blob in problem for problem in row.problems)
    assert lines(there, "s") == lines(here, "s")
    listed = there.resume("s").checkpoints()
    assert [point.id for point in listed] == ([] if is_shared else [second.id])
    for point in listed:
        assert {path for path, _ in blobs_of(there, point.roots[0].tree)} >= {"top", "sub/one", "sub/deep/three"}
        assert all(interior(there).store.get(name) for _, name in blobs_of(there, point.roots[0].tree))
    derived.put(interior(there).store, {turnlog.log.payload.digest(b"nobody's"): b"nobody's"})
    assert there.gc().blobs >= 1
    assert len(there.resume("s").checkpoints()) == len(listed)
    assert there.resume("s").messages()[-1].blocks[0].text.startswith("a long one")


def test_what_was_lost_comes_when_it_is_there_again(project: Path, there: Home, tmp_path: Path):
    here, backup = make("memory", tmp_path), make("memory", tmp_path)
    with here.create(id="s", workspace=project) as s:
        point = s.checkpoint("one")
    here.push(backup)
    blob = dict(blobs_of(here, point.roots[0].tree))["sub/one"]
    damage(here, blob, "missing")
    [row] = here.push(there)
    assert len(row.problems) == 1
    assert there.resume("s").checkpoints() == []
    with here.resume("s") as s:  # what is missing is told, and what is new comes
        s.user("more")
        shutil.rmtree(project / "sub")
        later = s.checkpoint("two")
    [row] = here.push(there)
    assert (row.outcome, row.problems) == ("grown", [])
    assert [found.id for found in there.resume("s").checkpoints()] == [later.id]
    there.gc()
    assert all(interior(there).store.get(name) for _, name in blobs_of(there, later.roots[0].tree))


def test_a_payload_that_is_lost_is_told_and_the_entry_comes(there: Home, tmp_path: Path):
    here = make("memory", tmp_path)
    with here.create(id="s") as s:
        s.user("one")
        s.user("long " * 50_000)
        s.user("three")
    (blob,) = interior(here).store._blobs
    damage(here, blob, "damaged")
    [row] = here.push(there)
    assert row.outcome == "new"
    assert len(row.problems) == 1 and blob in row.problems[0]
    assert lines(there, "s") == lines(here, "s")
    with pytest.warns(turnlog.TurnlogWarning, match="stand-in"):
        assert len(there.resume("s").messages()) == 3
    with pytest.raises(turnlog.NotFound):
        there.get_blob(blob)
    there.put_blob(b"nobody's")
    assert there.gc().blobs == 1


def test_what_lies_there_unneeded_does_not_make_a_checkpoint_with_holes(project: Path, tmp_path: Path):
    """A root tree that nobody needed any more, in a pack that was not written anew for it."""
    here, there = make("memory", tmp_path), make("memory", tmp_path)
    with here.create(id="s", workspace=project) as s:
        point = s.checkpoint("one")
    root = point.roots[0]
    blobs = dict(blobs_of(here, root.tree))
    there.put_blob(here.get_blob(root.tree))
    damage(here, blobs["sub/one"], "missing")
    here.push(there)
    assert there.resume("s").checkpoints() == []


def test_a_home_that_has_holes_already_is_collected(project: Path, tmp_path: Path):
    with make("memory", tmp_path) as home, home.create(id="s", workspace=project) as s:
        one = s.checkpoint("one")
        (project / "top").write_bytes(b"changed")
        s.checkpoint("two")
        damage(home, dict(blobs_of(home, one.roots[0].tree))["sub"], "missing")
        home.put_blob(b"nobody's")
        assert home.gc().blobs == 5  # and what was in the folder that is gone, of which nobody knows
        assert home.gc(dry_run=True).blobs == 0


def test_what_is_being_sent_is_not_collected_where_it_comes_from(project: Path, there: Home, tmp_path: Path):
    """Between finding out what a checkpoint needs and sending it, its session may go."""
    folder = tmp_path / "source"
    with turnlog.open(folder) as here, turnlog.open(folder) as other:
        with here.create(id="s", workspace=project) as s:
            point = s.checkpoint("one")
        stream = interior(here).store.stream
        collecting: list[threading.Thread] = []

        def purge() -> None:
            other.purge("s")
            other.gc()

        def slow(name: str) -> Iterator[bytes]:
            if not collecting:
                collecting.append(threading.Thread(target=purge))
                collecting[0].start()
                collecting[0].join(0.2)
            return stream(name)

        interior(here).store.stream = slow
        [row] = here.push(there)
        collecting[0].join()
        assert row.problems == []
        assert other.disk()["blobs"] == 0
        assert [found.id for found in there.resume("s").checkpoints()] == [point.id]
        assert all(interior(there).store.get(name) for _, name in blobs_of(there, point.roots[0].tree))


class ReadOnlyDisk(Disk):
    """Nothing can be written to it."""

    def open(self, path: str, flags: int, *, create: bool = False) -> int:
        if create or flags & (os.O_RDWR | os.O_WRONLY):
            raise OSError(errno.EROFS, "Read-only file system", path)
        return super().open(path, flags)


def test_a_home_that_cannot_be_written_can_be_pulled_from(project: Path, tmp_path: Path):
    folder = tmp_path / "source"
    with turnlog.open(folder) as source, source.create(id="s", workspace=project) as s:
        s.checkpoint("one")
    with Home(connect(str(folder), disk=ReadOnlyDisk())) as source, make("memory", tmp_path) as home:
        assert [row.outcome for row in home.pull(source)] == ["new"]
        assert len(home.resume("s").checkpoints()) == 1


def test_entries_with_a_checkpoint_that_names_nothing_real_arrive(tmp_path: Path):
    here, there = make("memory", tmp_path), make("memory", tmp_path)
    with here.create(id="s") as s:
        s.append(Checkpoint(roots=[]))
    here.push(there)
    assert len(there.resume("s").checkpoints()) == 1
    there.gc()
