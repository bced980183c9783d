"""Paths, links and special files that mean harm: nothing outside the folders of a session is changed or read."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.store.crashlab import fast_folder
from tests.workspace.hostilelab import ONE, Base, World, everything, paths_in, standing_in
from turnlog import Home, Session, TurnlogError
from turnlog.log.entry import Checkpoint, Intent
from turnlog.log.part import Root
from turnlog.machine.process import this_process
from turnlog.workspace.tree import FILE, FOLDER, LINK, TreeNode, encode_tree

SECRET = b"not yours"
DIGEST = "sha256:" + hashlib.sha256(SECRET).hexdigest()


@pytest.fixture(scope="module")
def base() -> Iterator[Base]:
    with fast_folder() as folder:
        yield Base(Path(folder))


@pytest.fixture
def world(base: Base) -> Iterator[World]:
    world = base.fresh()
    before = everything(world.outside)
    yield world
    assert everything(world.outside) == before
    assert oct(world.place.stat().st_mode) == PLACE_MODE
    assert oct(world.project.stat().st_mode) == PLACE_MODE


PLACE_MODE = oct(0o40755)


@pytest.fixture
def home(world: World) -> Iterator[Home]:
    with world.home() as home:
        yield home


def tried(act: Callable[[], Any]) -> Any:
    """Whatever comes of it: a value, or a typed error and nothing else."""
    try:
        return act()
    except TurnlogError as error:
        return error


# ── paths in logs ─────────────────────────────────────────────────────────────────────────────────

EVIL = [
    "../outside/secret", "src/../../outside/secret", "bytes:%2e%2e/outside/secret", "src/./../../outside/secret",
    "..", ".", "", "/", "src/..", "src//a.py", "src/", "/src", "x\0y", "n" * 5_000, "n/" * 3_000 + "n",
    ".git/hooks/post-checkout", "new/.git/config", "out/secret",
]  # fmt: skip
FOUND = ["file", 0o644, DIGEST, len(SECRET), ""]
OTHER = ["file", 0o666, "sha256:" + hashlib.sha256(b"changed\n").hexdigest(), 8, ""]
STEPS: dict[str, tuple[Any, Any]] = {
    "delete a file": (FOUND, None),
    "replace a file": (FOUND, OTHER),
    "create a file": (None, OTHER),
    "create a link": (None, ["link", 0, "", 0, "/etc/passwd"]),
    "change a folder": (["folder", 0o755, "", 0, ""], ["folder", 0o777, "", 0, ""]),
    "delete a folder": (["folder", 0o755, "", 0, ""], None),
    "create a folder": (None, ["folder", 0o777, "", 0, ""]),
}


def interrupted(session: Session, steps: list[Any], **fields: Any) -> Session:
    """A log that says a rewind was interrupted."""
    head = {"to": 0, "asof": 0, "why": "rewind", "left": 0}
    session.append(Intent(id="planted", host=this_process()["host"], steps=steps, head=head, **fields))
    return session


@pytest.mark.parametrize("step", STEPS)
def test_a_path_in_a_hostile_log_leads_nowhere(world: World, home: Home, step: str):
    (world.project / "out").symlink_to(world.outside)
    (world.project / ".git/hooks").mkdir(parents=True)
    before = world.files()
    rows = [[str(world.project), path, *STEPS[step]] for path in EVIL]
    rows += [
        [str(root), "secret", *STEPS[step]] for root in (world.outside, "/etc", world.place, "", "relative", "x\0")
    ]
    rows += [[str(world.place), "outside/secret", *STEPS[step]]]
    session = interrupted(home.resume(ONE), rows)
    tried(session.finish_rewind)
    assert not session.interrupted()
    assert world.files() == before
    assert len(session.problems()) == len(rows) or "delete" in step


@pytest.mark.parametrize(
    "steps",
    [
        [1], [[]], [["a", "b"]], [["a", "b", "c", "d"]], [[1, 2, None, None]], [["r", "p", ["file"], None]],
        [["r", "p", ["file", "x", 1, 2, 3], None]], [{"root": "r"}],
    ],
    ids=str,
)  # fmt: skip
def test_an_intent_that_makes_no_sense_can_be_aborted_and_nothing_else(world: World, home: Home, steps: list[Any]):
    before = world.files()
    session = interrupted(home.resume(ONE), steps)
    with pytest.raises(turnlog.Corrupt, match="cannot be read"):
        session.finish_rewind()
    with pytest.raises(turnlog.Corrupt):
        session.rewind(turns=1)
    session.finish_rewind(abort=True)
    assert world.files() == before
    session.rewind(turns=1)
    assert world.files() != before


@pytest.mark.parametrize(
    "node",
    [
        ["file", -1, OTHER[2], 8, ""], ["file", 0o1000000, OTHER[2], 8, ""], ["device", 0o600, OTHER[2], 8, ""],
        ["file", 2**70, OTHER[2], 8, ""],
        ["unknown", 0, "", 0, ""], ["link", 0, "", 0, "x\0y"], ["file", 0o600, "sha256:zz", 0, ""],
        ["file", 0o600, "../../x", 0, ""], ["file", 0o600, "sha256:" + "0" * 64, 0, ""],
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_put_back_is_named_and_nothing_is_left_of_it(world: World, home: Home, node: list[Any]):
    before = world.files()
    session = interrupted(home.resume(ONE), [[str(world.project), "victim", None, node]])
    head = session.finish_rewind()
    assert head is not None
    assert head.files == {"kept": 1}
    assert [outcome.step.raw for outcome in session.problems()] == [b"victim"]
    assert world.files() == before


def planted(home: Home, session: Session, world: World, tree: dict[bytes, TreeNode], **root: Any) -> Checkpoint:
    """A log with a checkpoint of such a tree."""
    name = home.put_blob(encode_tree(tree))
    home.put_blob(b"changed\n")
    place = root.pop("path", str(world.project))
    return session.append(Checkpoint(roots=[Root("workspace", place, name, **root)]))


INNER = {b"secret": TreeNode(FILE, 0o666, str(OTHER[2]), 8)}
TREES: dict[str, Callable[[str], dict[bytes, TreeNode]]] = {
    "above": lambda inner: {b"..": TreeNode(FOLDER, 0o777, inner)},
    "path": lambda inner: {b"../outside/secret": INNER[b"secret"]},
    "around": lambda inner: {b"src/../../outside": TreeNode(FOLDER, 0o777, inner)},
    "absolute": lambda inner: {b"/etc/turnlog-test": INNER[b"secret"]},
    "dot": lambda inner: {b".": TreeNode(FOLDER, 0o777, inner)},
    "empty": lambda inner: {b"": TreeNode(FOLDER, 0o777, inner)},
    "nul": lambda inner: {b"a\0b": INNER[b"secret"]},
    "long": lambda inner: {b"n" * 300: INNER[b"secret"]},
    "link first": lambda inner: {b"out": TreeNode(LINK, target=b"../outside"), b"out/secret": INNER[b"secret"]},
    "git": lambda inner: {b".git": TreeNode(FOLDER, 0o755, inner)},
}


@pytest.mark.parametrize("tree", TREES)
def test_a_hostile_tree_leads_nowhere(world: World, home: Home, tree: str):
    session = home.resume(ONE)
    point = planted(home, session, world, TREES[tree](home.put_blob(encode_tree(INNER))))
    (world.project / "src/a.py").write_text("something happened since")
    for force in (False, True):
        tried(lambda force=force: session.plan_rewind(to=point, force=force))
        tried(lambda force=force: session.rewind(to=point, force=force))
    assert not (world.project / ".git").exists()
    assert oct(world.project.stat().st_mode) == PLACE_MODE


def test_a_checkpoint_of_another_folder_does_not_lead_there(world: World, home: Home):
    session = home.resume(ONE)
    for path in (str(world.outside), str(world.place), "/", "relative", str(world.project) + "/../outside"):
        point = planted(home, session, world, INNER, path=path)
        tried(lambda point=point: session.rewind(to=point, force=True))
    assert (world.outside / "secret").read_bytes() == SECRET


# ── links and special files ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_that_became_a_link_is_not_gone_through(world: World, home: Home, force: bool):
    """What it points to looks just as the turn left the folder."""
    for name, (_, *rest) in everything(world.project / "src").items():
        (world.outside / name).write_bytes(rest[-1])
        (world.outside / name).chmod(int(rest[0], 8) & 0o777)
    before = everything(world.outside)
    (world.project / "src").rename(world.place / "away")
    (world.project / "src").symlink_to(world.outside)
    session = home.resume(ONE)
    names = paths_in(home, session.checkpoint())
    assert not [name for name in names if name.startswith(b"src/")]
    session.rewind(turns=1, force=force)
    assert everything(world.outside) == before
    for name in ("a.py", "b.py"):
        (world.outside / name).unlink()


@pytest.mark.parametrize("force", [False, True])
def test_a_file_that_became_a_link_is_replaced_not_written_through(world: World, home: Home, force: bool):
    (world.project / "src/a.py").unlink()
    (world.project / "src/a.py").symlink_to(world.outside / "secret")
    home.resume(ONE).rewind(turns=1, force=force)
    assert (world.project / "src/a.py").is_symlink() is not force


def test_the_workspace_itself_may_not_become_a_link(world: World, home: Home):
    session = home.resume(ONE)
    world.project.rename(world.place / "away")
    world.project.symlink_to(world.outside)
    for act in (session.checkpoint, session.undo, lambda: session.rewind(turns=1)):
        assert isinstance(tried(act), TurnlogError)
    assert everything(world.outside) == {"secret": ("file", "0o100644", SECRET)}
    world.project.unlink()
    (world.place / "away").rename(world.project)


@pytest.mark.parametrize("kind", ["fifo", "socket", "device"])
def test_a_special_file_blocks_nothing_and_is_never_touched(world: World, home: Home, kind: str):
    place = world.project / "src/a.py"
    place.unlink()
    if kind == "fifo":
        os.mkfifo(place)
        (world.project / ".gitignore").unlink(missing_ok=True)
        os.mkfifo(world.project / ".gitignore")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(place))
    else:
        try:
            os.mknod(place, 0o600 | 0o020000, os.makedev(1, 5))
        except PermissionError:
            pytest.skip("only root makes devices")
    signal.alarm(20)
    try:
        session = home.resume(ONE)
        point = session.checkpoint()
        assert "src/a.py" in [item["path"] for item in point.skipped]
        before = place.lstat()
        session.rewind(turns=1, force=True)
        assert place.lstat().st_ino == before.st_ino
    finally:
        signal.alarm(0)


def test_a_second_name_of_a_file_keeps_its_content_and_mode(world: World, home: Home):
    for name in ("src/a.py", "src/b.py"):
        os.link(world.project / name, world.outside / name.replace("/", "-"))
    before = everything(world.outside)
    home.resume(ONE).rewind(turns=1)
    assert (world.project / "src/b.py").stat().st_mode & 0o777 == 0o755
    assert everything(world.outside) == before
    for name in ("src-a.py", "src-b.py"):
        (world.outside / name).unlink()


def test_a_home_inside_the_workspace_is_not_part_of_it(tmp_path: Path):
    (tmp_path / "a").write_text("a")
    with turnlog.open(tmp_path / "deep/home") as home:
        session = home.create(workspace=tmp_path)
        first = paths_in(home, session.checkpoint())
        assert not [name for name in first if b"sessions" in name]
        assert paths_in(home, session.checkpoint()) == first


# ── somebody swaps a folder while we work ─────────────────────────────────────────────────────────


class Trap:
    """A folder of the project that can become a link to a folder outside which looks just like it."""

    def __init__(self, world: World) -> None:
        self.folder = world.project / "src"
        self.away = world.place / "away"
        self.bait = world.outside
        for name, (_, mode, data) in everything(self.folder).items():
            (self.bait / name).write_bytes(data)
            (self.bait / name).chmod(int(mode, 8) & 0o777)
        (self.bait / "only outside").write_text("never to be read")
        self.before = everything(self.bait)

    def spring(self) -> None:
        self.folder.rename(self.away)
        self.folder.symlink_to(self.bait)

    def reset(self) -> None:
        self.folder.unlink()
        self.away.rename(self.folder)

    def repair(self) -> None:
        """A rewind made the folder anew while it was away."""
        if self.folder.is_symlink():
            self.folder.unlink()
        if self.away.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            self.away.rename(self.folder)

    def check(self, home: Home) -> None:
        assert everything(self.bait) == self.before
        for point in home.resume(ONE).checkpoints():
            assert not [path for path in paths_in(home, point) if b"only outside" in path]


@pytest.mark.parametrize("act", ["checkpoint", "rewind"])
def test_whenever_a_folder_is_swapped_for_a_link_nothing_outside_is_touched(base: Base, act: str):
    at, calls = 0, 1
    while calls > at:
        at, calls = at + 1, 0
        world = base.fresh()
        trap = Trap(world)

        def before(name: str, at: int = at, trap: Trap = trap) -> None:
            nonlocal calls
            calls += 1
            if calls == at:
                trap.spring()

        with world.home() as home:
            session = home.resume(ONE)
            with standing_in(before):
                tried(session.checkpoint if act == "checkpoint" else partial(session.rewind, turns=1))
            trap.check(home)
    assert at > 15


def test_a_process_that_swaps_all_the_time_gets_nothing_outside_touched(base: Base):
    world = base.fresh()
    trap = Trap(world)
    swapper = os.fork()
    if swapper == 0:
        try:
            while True:
                try:
                    trap.spring()
                    trap.reset()
                except OSError:
                    with suppress(OSError):  # a rewind was faster once more: again
                        trap.repair()
        finally:
            os._exit(1)
    try:
        with world.home() as home:
            session = home.resume(ONE)
            ask = next(iter(session.entries(kind="message")))
            for number in range(60):
                tried(session.checkpoint)
                tried(session.undo if number % 2 else lambda: session.rewind(before=ask, force=True))
        os.kill(swapper, 0)  # it swapped all the time
    finally:
        os.kill(swapper, signal.SIGKILL)
        _, status = os.waitpid(swapper, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "it did not swap all the time"
    with world.home() as home:
        trap.check(home)
