"""Every state a power cut may leave: nothing acknowledged is missing, and the log goes on."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator

import pytest

from tests.store.crashlab import (
    HOME,
    Book,
    Counter,
    Explorer,
    Recorder,
    Scenario,
    Tape,
    Timeline,
    Tree,
    Witness,
    fast_folder,
    go_on,
    home_at,
    random_life,
)  # fmt: skip
from tests.workspace.hostilelab import paths_in
from turnlog import AlreadyExists, Image, Note, NotFound, Text
from turnlog.log.entry import Message
from turnlog.store.files.homefolder import HomeFolder
from turnlog.store.files.repair import repair
from turnlog.workspace import scan

MODELS = ("posix", "ext4")
ONE = "one"
_LIMIT = 300
"""So many states of each: other ones on every run, and more in the soak."""


@pytest.fixture
def seed() -> int:
    """Another one on every run; pytest's --randomly-seed brings it back."""
    return random.randrange(1 << 32)


@pytest.fixture
def explorer(seed: int) -> Iterator[Explorer]:
    with fast_folder() as folder:
        explorer = Explorer(folder, seed, limit=_LIMIT)
        yield explorer
        print(f"seed {seed}: {explorer.states} states")


def said(text: str) -> Message:
    return Message(role="user", blocks=[Text(text)])


# ── what people do ────────────────────────────────────────────────────────────────────────────────


def create(witness: Witness) -> None:
    witness.create(ONE, title="first")


def append_some(witness: Witness) -> None:
    session = witness.resume(ONE)
    witness.append(session, said("hello"))
    witness.append(session, Note(text="x" * 700))
    witness.append(session, said("bye"))


def append_across_pages(witness: Witness) -> None:
    session = witness.resume(ONE)
    witness.append(session, said("a" * 3_000))
    witness.append(session, said("b" * 9_000))
    witness.append(session, said("c"))


def append_batches(witness: Witness) -> None:
    session = witness.resume(ONE)
    witness.append(session, Note(text="1"), Note(text="2"))
    witness.append(session, *(said(f"{n}" * 1_500) for n in range(4)))
    witness.append(session, Note(text="3"))


def append_blobs(witness: Witness) -> None:
    session = witness.resume(ONE)
    witness.append(session, Message(role="user", blocks=[Image("image/png", data=b"\x89PNG" * 40)]))
    witness.append(session, said("".join(chr(97 + n * 7 % 26) for n in range(70_000))))
    witness.put(b"for later")
    witness.append(session, Message(role="user", blocks=[Image("image/png", data=b"\x89PNG" * 40)]))


def collect_blobs(witness: Witness) -> None:
    session = witness.resume(ONE)
    for data in (b"first" * 50, b"second" * 50):
        witness.append(session, Message(role="user", blocks=[Image("image/png", data=data)]))
    witness.home.put_blob(b"nobody needs this")
    witness.home.gc()
    witness.append(session, Message(role="user", blocks=[Image("image/png", data=b"first" * 50)]))
    witness.home.gc()


def fork(witness: Witness) -> None:
    session = witness.resume(ONE)
    witness.append(session, said("common"))
    other = witness.fork(session, "two")
    witness.append(other, said("there"))
    witness.append(session, said("here"))


def fork_behind_a_fold(witness: Witness) -> None:
    session = witness.resume(ONE)
    witness.append(session, *(Note(text=str(n)) for n in range(260)))
    witness.fork(session, "two")
    witness.append(session, said("only in the first"))


def delete_and_restore(witness: Witness) -> None:
    witness.append(witness.resume(ONE), said("hello"))
    witness.delete(ONE)
    witness.restore(ONE)
    witness.append(witness.resume(ONE), said("back"))


def purge(witness: Witness) -> None:
    session = witness.resume(ONE)
    witness.append(session, said("common"))
    other = witness.fork(session, "two")
    witness.append(session, said("not in the fork"))
    witness.delete(ONE)
    witness.purge(ONE)
    witness.append(other, said("still here"))
    witness.delete("two")
    witness.purge("two")


def append_beside_others(witness: Witness) -> None:
    other = witness.beside()
    sync_batch = witness.begin_to_append(ONE, *(Note(text=f"{n}" * 1_500) for n in range(4)))
    sync_line = other.begin_to_append(ONE, Note(text="x" * 2_500))
    witness.append(witness.beside().resume(ONE), Note(text="third"))
    sync_line()
    sync_batch()


APPENDING: dict[str, Scenario] = {
    "appends": append_some,
    "pages": append_across_pages,
    "batches": append_batches,
    "several": append_beside_others,
    "blobs": append_blobs,
    "collecting": collect_blobs,
    "forks": fork,
    "trash": delete_and_restore,
    "purge": purge,
}


# ── and the power goes ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("model", MODELS)
def test_a_new_home_is_there_once_its_first_session_is(explorer: Explorer, model: str):
    explorer.crash(create, model=model).assert_none(explorer.seed)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("scenario", APPENDING)
def test_an_acknowledged_entry_survives_every_crash_state(explorer: Explorer, scenario: str, model: str):
    explorer.crash(APPENDING[scenario], before=create, model=model).assert_none(explorer.seed)


@pytest.mark.parametrize("model", MODELS)
def test_whatever_people_do_survives_every_crash_state(explorer: Explorer, model: str):
    explorer.limit = 60
    for number in range(4):
        explorer.crash(random_life(explorer.seed + number), before=create, model=model).assert_none(explorer.seed)


def test_a_fork_never_inherits_what_came_after_it(explorer: Explorer):
    explorer.limit = 150
    explorer.crash(fork_behind_a_fold, before=create).assert_none(explorer.seed)


@pytest.mark.parametrize("scenario", APPENDING)
def test_a_second_crash_finds_no_more_than_the_first(explorer: Explorer, scenario: str):
    explorer.crash_twice(APPENDING[scenario], before=create).assert_none(explorer.seed)


def test_a_repair_is_there_or_it_is_not(explorer: Explorer):
    explorer.limit = 60
    mended = 0

    def mend(witness: Witness) -> None:
        nonlocal mended
        done = repair(HomeFolder(os.path.join(witness.tape.top, HOME), witness.disk), ONE, clock=Counter())
        mended += done is not None
        witness.append(witness.resume(ONE), said("mended"))

    for number in range(1, 9):
        tape = Tape(explorer.new_folder())
        explorer.live(tape, create)
        assert not explorer.live(tape, append_batches, Recorder(tape, dies_before=number, torn=True))
        tape.tell(is_shared=True)
        since = len(tape.events)
        explorer.live(tape, mend)
        explorer.look_at(Timeline(tape, "posix", since=since)).assert_none(explorer.seed)
    assert mended


# ── the process first, then the power ─────────────────────────────────────────────────────────────


def create_or_resume(witness: Witness) -> None:
    try:
        session = witness.create(ONE)
    except AlreadyExists:
        session = witness.resume(ONE)
    witness.append(session, said("hello"))


def show_the_image(witness: Witness) -> None:
    session = witness.resume(ONE)
    witness.append(session, Message(role="user", blocks=[Image("image/png", data=b"\x89PNG" * 40)]))


def bring_back_and_append(witness: Witness) -> None:
    try:
        witness.restore(ONE)
    except NotFound:
        pass  # the one before got that far
    witness.append(witness.resume(ONE), said("back"))


def test_a_process_does_not_build_on_folders_that_a_dead_one_did_not_sync(explorer: Explorer):
    explorer.limit = 50
    explorer.kill_then_crash(create, create_or_resume).assert_none(explorer.seed)


def test_a_process_does_not_rely_on_blobs_that_a_dead_one_did_not_sync(explorer: Explorer):
    explorer.limit = 50
    explorer.kill_then_crash(show_the_image, show_the_image, before=create).assert_none(explorer.seed)


def test_a_process_goes_on_where_a_dead_one_left_a_session_between_two_places(explorer: Explorer):
    explorer.limit = 50
    explorer.kill_then_crash(delete_and_restore, bring_back_and_append, before=create).assert_none(explorer.seed)


@pytest.mark.parametrize("scenario", ["appends", "batches"])
def test_a_process_goes_on_after_whatever_a_dead_one_wrote(explorer: Explorer, scenario: str):
    explorer.limit = 30
    explorer.kill_then_crash(APPENDING[scenario], go_on, before=create).assert_none(explorer.seed)


# ── can the explorer fail? ────────────────────────────────────────────────────────────────────────


class NeverSyncsFolders(Recorder):
    def sync_folder(self, path: str) -> None:
        del path


class NeverSyncsFiles(Recorder):
    def sync(self, fd: int) -> None:
        del fd


@pytest.mark.parametrize("disk", [NeverSyncsFolders, NeverSyncsFiles])
def test_a_disk_that_does_not_sync_is_found_out(seed: int, disk: type[Recorder]):
    with fast_folder() as folder:
        explorer = Explorer(folder, seed, disk=disk, limit=100)
        assert explorer.crash(create).violations
        assert explorer.crash(append_some, before=create).violations
        assert explorer.crash(append_blobs, before=create).violations


# ── checkpoints ───────────────────────────────────────────────────────────────────────────────────


class Contents(Explorer):
    """Also holds every checkpoint that is left against what it refers to, and takes another."""

    def open_and_check(self, tree: Tree, book: Book) -> None:
        folder = self.new_folder()
        try:
            tree.write_to(folder)
            home = home_at(os.path.join(folder, HOME))
            for info in home.sessions():
                session = home.resume(info.id)
                for point in session.checkpoints():
                    paths_in(home, point)
                if session.workspace:
                    assert b"a" in paths_in(home, session.checkpoint("after the crash"))
            home.close()
        finally:
            shutil.rmtree(folder)
        super().open_and_check(tree, book)


@pytest.fixture
def contents(seed: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Contents, str]]:
    """An explorer, and a workspace that no crash touches."""
    monkeypatch.setattr(scan, "YOUNG_NS", -(1 << 60))  # what was seen once is relied on at once
    with fast_folder() as folder, fast_folder() as workspace:
        os.mkdir(os.path.join(workspace, "sub"))
        for name in ("a", "sub/b"):
            with open(os.path.join(workspace, name), "wb") as file:
                file.write(name.encode() * 2_500)
        yield Contents(folder, seed, limit=80), workspace


def in_a_workspace(workspace: str) -> Scenario:
    def make(witness: Witness) -> None:
        witness.create(ONE, workspace=workspace)
        witness.tape.tell(is_shared=True)  # a turn and a rewind append what nobody handed in

    return make


def checkpoints(workspace: str) -> Scenario:
    def take(witness: Witness) -> None:
        session = witness.resume(ONE)
        for number in range(2):
            with open(os.path.join(workspace, "sub/b"), "wb") as file:
                file.write(b"%d" % number * 3_000)
            point = session.checkpoint()
            witness.rely_on(session, point)

    return take


def turns_and_rewinds(workspace: str) -> Scenario:
    def work(witness: Witness) -> None:
        session = witness.resume(ONE)
        with session.turn():
            witness.append(session, said("go"))
            with open(os.path.join(workspace, "a"), "wb") as file:
                file.write(b"changed")
        witness.rely_on(session, session.rewind(turns=1))

    return work


def collect_checkpoints(workspace: str) -> Scenario:
    def work(witness: Witness) -> None:
        checkpoints(workspace)(witness)
        witness.home.put_blob(b"nobody needs this" * 100)
        witness.home.gc()
        checkpoints(workspace)(witness)

    return work


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("scenario", [checkpoints, turns_and_rewinds, collect_checkpoints], ids=lambda s: s.__name__)
def test_a_checkpoint_that_is_in_the_log_has_all_its_content(
    contents: tuple[Contents, str], scenario: Callable[[str], Scenario], model: str
):
    explorer, workspace = contents
    explorer.crash(scenario(workspace), before=in_a_workspace(workspace), model=model).assert_none(explorer.seed)


def test_a_checkpoint_does_not_rely_on_what_a_dead_process_did_not_sync(contents: tuple[Contents, str]):
    explorer, workspace = contents
    explorer.limit = 12

    def take(witness: Witness) -> None:
        session = witness.resume(ONE)
        witness.rely_on(session, session.checkpoint())

    explorer.kill_then_crash(take, take, before=in_a_workspace(workspace)).assert_none(explorer.seed)
