"""Whatever is collected, purged, restored and forked in whatever order: a checkpoint that is listed can be restored."""

import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.faces import files, place
from turnlog.errors import NotFound
from turnlog.log.entry import Drop
from turnlog.session import Home
from turnlog.store.files import connect
from turnlog.store.files.disk import Disk
from turnlog.workspace.tree import FOLDER, decode_tree

__all__ = ["files", "place"]

Contents = dict[str, bytes]
STEPS = 50


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def contents(folder: Path) -> Contents:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Life:
    """Sessions in one workspace, and what every checkpoint of theirs has to bring back."""

    def __init__(self, home: Home, project: Path, seed: int) -> None:
        self.home = home
        self.project = project
        self.random = random.Random(seed)
        self.expected: dict[str, Contents] = {}
        self._drop, home._drop = home._drop, self.drop_and_fork

    def drop_and_fork(self, given_up: list[Any]) -> None:
        """Somebody forks while a collection writes down what it gives up."""
        self.fork()
        self._drop(given_up)
        self.fork()

    def work(self, session: turnlog.Session) -> None:
        known = {point.id for point in session.checkpoints()}
        with session.turn():
            session.user("go")
            name = self.random.choice(["a", "b", "sub/c", "sub/deep/d"])
            path = self.project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            for point in session.checkpoints():
                if point.id not in known:
                    self.expected.setdefault(point.id, contents(self.project))
            known.update(point.id for point in session.checkpoints())
            path.write_bytes(self.random.randbytes(self.random.choice([300, 3_000, 30_000])))
        if self.random.random() < 0.2:
            session.checkpoint("by name")
        for point in session.checkpoints():
            if point.id not in known:
                self.expected.setdefault(point.id, contents(self.project))

    def step(self) -> None:
        live = [row.id for row in self.home.sessions()]
        gone = [row.id for row in self.home.sessions(deleted=True)]
        what = self.random.choice(["work", "work", "work", "fork", "fork", "delete", "restore", "purge", "gc", "gc"])
        if not live or what == "work":
            chosen = self.home.resume(self.random.choice(live)) if live else self.home.create(workspace=self.project)
            self.work(chosen)
        elif what == "fork":
            self.fork()
        elif what == "gc":
            self.home.gc(quota_bytes=self.random.choice([None, 0, 20_000, 60_000]))
        elif what == "restore" and gone:
            name = self.random.choice(gone)
            self.home.restore(name, as_=self.free(live) if name in live else None)
        elif what == "delete" and set(live) - set(gone):
            self.home.delete(self.random.choice(sorted(set(live) - set(gone))))
        elif what == "purge":
            name = self.random.choice(live + gone)
            self.home.purge(name, deleted=self.random.choice([True, False]) if name in live and name in gone else None)

    def free(self, live: list[str]) -> str:
        """An id that no session has, not seldom that of one that was deleted or purged."""
        return next(name for name in (f"s{number}" for number in range(100)) if name not in live)

    def fork(self) -> None:
        live = [row.id for row in self.home.sessions()]
        if live:
            session = self.home.resume(self.random.choice(live))
            session.fork(self.random.choice(list(session.entries())), id=self.free(live))

    def check(self) -> int:
        """Read back every checkpoint that any session lists, to the byte."""
        listed = 0
        for row in self.home.sessions():
            for point in self.home.resume(row.id).checkpoints():
                listed += 1
                root = point.roots[0]
                assert self.read(root.tree) == self.expected[point.id], (row.id, point.seq)
        return listed

    def read(self, tree: str, prefix: str = "") -> Contents:
        found: Contents = {}
        for name, node in decode_tree(self.home.get_blob(tree)).items():
            path = prefix + os.fsdecode(name)
            if node.kind == FOLDER:
                found |= self.read(node.digest, path + "/")
            else:
                found[path] = self.home.get_blob(node.digest)
        return found


@pytest.mark.parametrize(
    ("place", "seed"), [("memory", 0), ("memory", 1), ("memory", 2), ("files", 3)], indirect=["place"]
)
def test_every_checkpoint_that_is_listed_can_be_restored(place, project: Path, seed: int):
    life = Life(place.open(), project, seed)
    listed = 0
    for _ in range(STEPS):
        life.step()
        listed += life.check()
    assert listed > STEPS


# ── one by one ────────────────────────────────────────────────────────────────────────────────────


def turn(session: turnlog.Session, project: Path, name: str = "noise", size: int = 50_000) -> bytes:
    data = os.urandom(size)
    with session.turn():
        session.user("go")
        (project / name).write_bytes(data)
    return data


def listed(session: turnlog.Session) -> list[int]:
    return [point.seq for point in session.checkpoints()]


def test_a_fork_in_the_trash_lists_nothing_that_was_given_up_meanwhile(tmp_path: Path, project: Path):
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=project)
        turn(s, project)
        fork = s.fork()
        assert listed(fork)
        home.delete(fork.id)
        assert home.gc(quota_bytes=0).dropped
        home.restore(fork.id)
        assert listed(home.resume(fork.id)) == []
        assert home.resume(fork.id).rewind(turns=1).files == {}
        with pytest.raises(NotFound, match="no turn"):
            home.resume(fork.id).diff(turn=1)


def test_a_fork_of_what_was_purged_lists_nothing_that_was_given_up_before(tmp_path: Path, project: Path):
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=project)
        turn(s, project)
        at = s.seq
        assert home.gc(quota_bytes=0).dropped
        fork = home.resume(s.id).fork(at)
        home.purge(s.id)
        assert listed(fork) == listed(home.resume(fork.id)) == listed(fork.fork()) == []


def test_a_tree_that_lies_among_what_others_need_goes_before_its_content(tmp_path: Path, project: Path):
    """A pack is not written anew for a little that is dead in it: so the tree would stay, without its content."""
    with turnlog.open(tmp_path / "home") as home:
        (project / "first").write_text("so that no checkpoint is of an empty folder")
        s = home.create(workspace=project)
        turn(s, project, "small")
        turn(s, project, "big", 3_000_000)  # its tree needs both, and lies in one pack with the big one
        turn(s, project, "small")
        s.checkpoint("keeps the big one")
        early = s.fork(s.checkpoints()[3])
        assert home.gc(quota_bytes=0).dropped
        assert listed(home.resume(early.id)) == []
        (kept,) = home.resume(s.id).checkpoints()
        (project / "big").unlink()
        home.resume(s.id).rewind(to=kept, force=True)
        assert (project / "big").stat().st_size == 3_000_000


class DyingDisk(Disk):
    """Its process dies when it removes the file with that number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._left = number

    def unlink(self, path: str) -> None:
        self._left -= 1
        if self._left <= 0:
            raise KeyboardInterrupt
        super().unlink(path)


def test_a_collection_that_dies_anywhere_leaves_no_checkpoint_without_content(tmp_path: Path, project: Path):
    with turnlog.open(tmp_path / "home") as home:
        (project / "first").write_text("so that no checkpoint is of an empty folder")
        s = home.create(workspace=project)
        turn(s, project, "small")
        turn(s, project, "big", 3_000_000)
        turn(s, project, "small")
        s.checkpoint("keeps the big one")
        early = s.fork(s.checkpoints()[3])
    shutil.copytree(tmp_path / "home", tmp_path / "before")
    deaths = 0
    is_done = False
    while not is_done:
        shutil.rmtree(tmp_path / "home")
        shutil.copytree(tmp_path / "before", tmp_path / "home")
        with turnlog.Home(connect(str(tmp_path / "home"), disk=DyingDisk(deaths + 1))) as home:
            try:
                home.gc(quota_bytes=0)
                is_done = True
            except KeyboardInterrupt:
                deaths += 1
        with turnlog.open(tmp_path / "home") as home:
            life = Life(home, project, 0)
            for session in (home.resume(early.id), home.resume(s.id)):
                for point in session.checkpoints():
                    life.read(point.roots[0].tree)
    assert deaths > 3


def test_what_another_session_says_was_given_up_is_still_there(tmp_path: Path, project: Path):
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=project)
        turn(s, project)
        fork = s.fork()
        fork.append(Drop(checkpoints=[point.id for point in fork.checkpoints()]))
        assert listed(fork) == []
        assert listed(s)
