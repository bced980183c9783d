"""The writer's lock, and files that are not what they were: told apart, refused, never harmed."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

import turnlog
from tests.store.actors import actors
from turnlog import Conflict, Corrupt, Home, NotFound, Session, TurnlogError, Unavailable, Unsupported
from turnlog.log.ids import imported_id
from turnlog.session.interior import interior
from turnlog.store.files import connect, disk
from turnlog.store.files.disk import Disk, Held
from turnlog.testing import message_draft, undamaged_entries
from turnlog.testing.build import fork, note, start
from turnlog.testing.store.erasing import erasing_plan, erasure
from turnlog.thread.home.alias import session_of


@pytest.fixture
def session(tmp_path: Path) -> Session:
    session = turnlog.open(tmp_path).create(id="one")
    session.user("begin")
    return session


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "one.jsonl"


# ── who holds the lock ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("child", ["", "with a child"], ids=["alone", "with a child process"])
def test_the_lock_of_a_killed_process_is_free_at_once(tmp_path: Path, session: Session, child: str):
    with actors(("hold", tmp_path, "one", child)) as (holder,):
        holder.go()
        sleeper = holder.hear()
        holder.send(signal.SIGKILL)
        begin = time.monotonic()
        session.note("the lock is free")
        waited = time.monotonic() - begin
        if sleeper:
            os.kill(sleeper, signal.SIGKILL)
    assert waited < 1


def test_a_lock_that_is_held_for_too_long_is_an_error_that_says_so(
    tmp_path: Path, session: Session, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(disk, "LOCK_WAIT_S", 0.2)
    with actors(("hold", tmp_path, "one")) as (holder,):
        holder.send(signal.SIGSTOP)
        with pytest.raises(Unavailable, match="held the lock"):
            session.note("never")
        holder.send(signal.SIGCONT)
        assert len(session.messages()) == 1, "a reader needs no lock"
        assert len(turnlog.open(tmp_path).sessions()) == 1
    session.note("free again")
    assert [note.text for note in session.entries(kind="note")] == ["free again"]


def test_a_writer_waits_for_another_one(tmp_path: Path, session: Session, file: Path):
    with actors(("notes", tmp_path, "one", "waits", 1)) as (other,):
        fd = os.open(file, os.O_RDWR)
        Disk().lock(fd)
        before = file.read_bytes()
        other.go()
        time.sleep(0.2)
        assert file.read_bytes() == before
        os.close(fd)
        assert other.hear()
    session.note("and now we")
    assert [note.text[:5] for note in session.entries(kind="note")] == ["waits", "and n"]


def test_whether_a_session_exists_is_told_while_another_writes(tmp_path: Path, session: Session, file: Path):
    home = turnlog.open(tmp_path)
    imported = home.create(id=imported_id("claude", "native"))
    told: list[object] = []

    def ask() -> None:
        told.append(home.exists("one"))
        told.append(home.exists("on"))
        told.append(session_of(interior(home).store, "claude", "native", remember=False))

    asking = threading.Thread(target=ask, daemon=True)
    with Disk().hold(str(file)), Disk().hold(str(file.with_name(f"{imported.id}.jsonl"))):
        asking.start()
        asking.join(5)
        assert told == [True, False, imported.id]


# ── files that are not what they were ─────────────────────────────────────────────────────────────


def test_a_file_replaced_by_that_of_another_session_is_not_written_to(tmp_path: Path, session: Session, file: Path):
    other = turnlog.open(tmp_path / "elsewhere").create(id="one")
    other.user("another history")
    os.replace(tmp_path / "elsewhere" / "sessions" / "one.jsonl", file)
    before = file.read_bytes()
    for _ in range(2):
        with pytest.raises(NotFound):
            session.user("not into that one")
    assert file.read_bytes() == before


def test_a_file_replaced_by_an_older_one_of_the_session_is_a_conflict(session: Session, file: Path, tmp_path: Path):
    shutil.copy(file, tmp_path / "copy")
    session.user("after the backup")
    os.replace(tmp_path / "copy", file)
    before = file.read_bytes()
    with pytest.raises(Conflict):
        session.user("to what is there no more")
    assert file.read_bytes() == before


def test_a_file_replaced_by_a_copy_of_itself_goes_on(session: Session, file: Path, tmp_path: Path):
    shutil.copy(file, tmp_path / "copy")
    os.replace(tmp_path / "copy", file)
    session.user("on we go")
    assert len(turnlog.open(tmp_path).resume("one").messages()) == 2


def test_a_file_that_became_shorter_is_a_conflict(session: Session, file: Path, tmp_path: Path):
    session.note("to be lost")
    data = file.read_bytes()
    file.write_bytes(data[: data.rindex(b'{"type":"note"')])
    with pytest.raises(Conflict):
        session.user("after something that is not there")
    session.refresh()
    new = session.user("knowing that")
    again = turnlog.open(tmp_path).resume("one")
    assert again.messages()[-1] == new
    assert not again.damage


def test_a_session_deleted_under_a_writer_is_not_found(tmp_path: Path, session: Session, file: Path):
    turnlog.open(tmp_path).delete("one")
    with pytest.raises(NotFound):
        session.user("into the trash?")
    assert not file.exists()
    turnlog.open(tmp_path).restore("one")
    session.user("back")
    assert len(turnlog.open(tmp_path).resume("one").messages()) == 2


def test_a_file_unlinked_under_a_writer_is_not_found_and_not_made_again(session: Session, file: Path):
    file.unlink()
    with pytest.raises(NotFound):
        session.note("into nowhere")
    assert not file.exists()


def test_a_session_purged_and_made_again_is_not_taken_for_the_old_one(tmp_path: Path, session: Session):
    home = turnlog.open(tmp_path)
    home.purge("one")
    home.create(id="one").user("new")
    before = len(session.messages())
    for write in (session.user, partial(session.set, "title"), session.note, partial(session.user, rebase=True)):
        with pytest.raises(NotFound, match="another session has its id"):
            write("meant for the old one")
        with suppress(NotFound):
            session.refresh()
    assert len(session.messages()) == before
    now = home.resume("one")
    assert (len(now.messages()), now.title, len(list(now.entries(kind="note")))) == (1, None, 0)


def test_a_session_whose_title_was_erased_by_another_process_goes_on(tmp_path: Path):
    session = turnlog.open(tmp_path).create(id="titled", title="a secret")
    session.user("one")
    turnlog.open(tmp_path).resume("titled").erase(next(iter(session.entries())))
    session.user("two")
    assert len(turnlog.open(tmp_path).resume("titled").messages()) == 2


def test_a_file_that_holds_another_session_is_refused(tmp_path: Path, session: Session, file: Path):
    os.rename(file, file.with_name("two.jsonl"))
    with pytest.raises(Corrupt, match="'two' holds session 'one'"):
        turnlog.open(tmp_path).resume("two")


# ── what somebody planted ─────────────────────────────────────────────────────────────────────────


def test_a_symbolic_link_is_not_followed(tmp_path: Path, session: Session, file: Path):
    target = tmp_path / "target"
    os.rename(file, target)
    before = target.read_bytes()
    file.symlink_to(target)
    with pytest.raises(Unavailable):
        turnlog.open(tmp_path).resume("one")
    with pytest.raises(TurnlogError):
        session.close()
        session.note("through the link")
    assert target.read_bytes() == before
    assert [info.is_readable for info in turnlog.open(tmp_path).sessions()] == [False]


def test_a_pipe_makes_nobody_wait(tmp_path: Path, session: Session, file: Path):
    session.close()
    file.unlink()
    os.mkfifo(file)
    home = turnlog.open(tmp_path)
    with pytest.raises(Unavailable):
        home.resume("one")
    assert [info.id for info in home.sessions()] == ["one"]
    with pytest.raises(TurnlogError):
        session.note("into a pipe")


def test_a_folder_with_the_name_of_a_session_harms_no_other(tmp_path: Path, session: Session):
    (tmp_path / "sessions" / "two.jsonl").mkdir()
    home = turnlog.open(tmp_path)
    with pytest.raises(TurnlogError):
        home.resume("two")
    assert {info.id: info.is_readable for info in home.sessions()} == {"one": True, "two": False}


def test_a_file_left_by_a_process_that_died_while_creating_is_no_session(tmp_path: Path, session: Session):
    (tmp_path / "sessions" / ".new-0123456789abcdef").write_bytes(b"half")
    home = turnlog.open(tmp_path)
    assert [info.id for info in home.sessions()] == ["one"]
    assert home.resume().id == "one"


# ── file systems without locks ────────────────────────────────────────────────────────────────────


class RemoteDisk(Disk):
    def file_system(self, path: str) -> str:
        del path
        return "nfs4"


def test_a_network_file_system_is_named_and_refused(tmp_path: Path):
    home = Home(connect(str(tmp_path / "home"), disk=RemoteDisk()))
    with pytest.raises(Unsupported, match="nfs4"):
        home.create(id="one")
    assert not list(tmp_path.rglob("*.jsonl"))


def test_a_session_on_a_network_file_system_can_be_read_but_not_appended_to(tmp_path: Path, session: Session):
    del session
    home = Home(connect(str(tmp_path), disk=RemoteDisk()))
    copy = home.resume("one")
    assert len(copy.messages()) == 1
    with pytest.raises(Unsupported, match="nfs4"):
        copy.note("not safe here")


def test_the_file_system_of_a_folder_has_a_name(tmp_path: Path):
    assert Disk().file_system(str(tmp_path))


# ── files that are moved or replaced meanwhile ────────────────────────────────────────────────────


class Interrupted(Disk):
    """Does something once, just before a file is locked or just after it was opened to be locked."""

    def __init__(self, path: Path, meanwhile: Callable[[], object], *, is_open: bool) -> None:
        self._path = str(path)
        self._meanwhile: Callable[[], object] | None = meanwhile
        self._is_open = is_open

    def _interrupt(self, path: str) -> None:
        if path == self._path and self._meanwhile is not None:
            meanwhile, self._meanwhile = self._meanwhile, None
            meanwhile()

    def hold(self, path: str, *, shared: bool = False, create: bool = False) -> Held:
        if not self._is_open:
            self._interrupt(path)
        held = super().hold(path, shared=shared, create=create)
        if self._is_open:
            self._interrupt(path)
        return held


def test_a_parent_that_is_deleted_while_it_is_forked_may_be_forked(tmp_path: Path):
    path = tmp_path / "sessions/s.jsonl"
    other = connect(str(tmp_path))
    [first] = undamaged_entries(other.create("s", [start("s")]))
    store = connect(str(tmp_path), disk=Interrupted(path, lambda: other.delete("s"), is_open=False))
    fork(store, "s", first, "child").close()
    assert list(store.ids()) == ["child"]


def test_a_parent_that_is_purged_while_it_is_forked_is_gone(tmp_path: Path):
    path = tmp_path / "sessions/s.jsonl"
    other = connect(str(tmp_path))
    [first] = undamaged_entries(other.create("s", [start("s")]))
    store = connect(str(tmp_path), disk=Interrupted(path, lambda: other.purge("s"), is_open=False))
    with pytest.raises(NotFound):
        fork(store, "s", first, "child")
    assert list(store.ids()) == []


@pytest.mark.parametrize("how", ["delete", "purge"])
def test_what_is_removed_is_the_file_that_is_locked(tmp_path: Path, how: str):
    """A repair replaces the file while another process waits for its lock: then a writer of the new file is seen."""
    path = tmp_path / "sessions/s.jsonl"
    other = connect(str(tmp_path))
    other.create("s", [start("s")]).close()

    def replace() -> None:
        shutil.copy(path, tmp_path / "new")
        os.rename(tmp_path / "new", path)

    class Watched(Interrupted):
        locked: list[bool] = []

        def unlink(self, path: str) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
            if path == self._path:
                fd = os.open(path, os.O_RDONLY)
                self.locked.append(not self.try_lock(fd))
                os.close(fd)
            os.unlink(path)

    watched = Watched(path, replace, is_open=True)
    store = connect(str(tmp_path), disk=watched)
    (store.delete if how == "delete" else store.purge)("s", after=1)
    assert watched.locked == [True]
    assert not path.exists()


@pytest.mark.parametrize("read_only", [True, False])
def test_a_log_that_is_read_while_others_erase_keeps_no_file_open(tmp_path: Path, read_only: bool):
    store = connect(str(tmp_path), durability="flush")
    log = store.create("s", [start("s")])
    for index in range(20):
        log.append([message_draft(f"said {index}", id=f"m{index}")], after=99, head=0)
    reader = store.open("s", read_only=read_only)
    before = len(os.listdir("/dev/fd"))
    for index in range(20):
        store.erase(erasing_plan("s", erasure(index + 2, f"m{index}")))
        assert undamaged_entries(reader)[index + 1].void
        if not read_only:
            log.append([note()], after=99, head=0)
    assert len(os.listdir("/dev/fd")) <= before + 2
