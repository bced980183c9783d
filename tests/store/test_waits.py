"""Nobody waits without end, and whoever waited too long is told for whom: processes that are stopped, or forked."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import turnlog
from tests.store.actors import actors
from turnlog import Home, Session, Unavailable
from turnlog.catalog import Catalog
from turnlog.session.interior import interior
from turnlog.store.files import disk
from turnlog.store.files.holder import name_holders
from turnlog.thread.reader import history_of


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return turnlog.open(tmp_path / "home")


@pytest.fixture
def session(home: Home, tmp_path: Path) -> Session:
    (tmp_path / "work").mkdir()
    session = home.create(id="one", workspace=tmp_path / "work")
    session.user("begin")
    return session


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "LOCK_WAIT_S", 0.2)


ALONE: dict[str, Callable[[Home, Session], object]] = {
    "gc": lambda home, session: home.gc(),
    "purge": lambda home, session: home.purge("one"),
}
TOGETHER: dict[str, Callable[[Home, Session], object]] = {
    "a checkpoint": lambda home, session: session.checkpoint(),
    "a picture": lambda home, session: session.user([turnlog.Image("image/png", data=b"\x89PNG" * 400)]),
    "a blob": lambda home, session: home.put_blob(b"blob"),
    "a rewind": lambda home, session: session.rewind(to=0),
    "deleting": lambda home, session: home.delete("one"),
}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("how", ["alone", "together"])
def test_whoever_waits_for_the_blobs_is_told_which_process_has_them(home: Home, session: Session, how: str):
    """A gc that was stopped with Ctrl-Z; an agent that was, while it took a checkpoint."""
    with actors(("hold_blobs", interior(home).store.folder, how)) as (holder,):
        holder.send(signal.SIGSTOP)
        for act in (ALONE | TOGETHER if how == "alone" else ALONE).values():
            with pytest.raises(Unavailable) as told:
                act(home, session)
            assert re.match(rf"process {holder.pid} \(.*\), which is stopped, has held the lock", told.value.message)
            assert told.value.hint
        if how == "together":
            session.checkpoint()
        assert session.user("what needs no blob goes on").seq
    for act in (TOGETHER | ALONE).values():
        if act is not TOGETHER["deleting"]:
            act(home, session)


@pytest.mark.usefixtures("impatient")
def test_whoever_waits_for_a_log_is_told_which_process_has_it(home: Home, session: Session):
    with actors(("hold", interior(home).store.folder, "one")) as (holder,):
        holder.send(signal.SIGSTOP)
        with pytest.raises(Unavailable, match=rf"process {holder.pid} .*stopped, has held the lock of this log"):
            session.note("never")


@pytest.mark.usefixtures("impatient")
def test_whoever_waits_for_the_catalog_is_told(home: Home, session: Session):
    session.close()
    with (
        Catalog(interior(home).store.folder, agents=False) as catalog,
        Catalog(interior(home).store.folder, agents=False) as other,
    ):
        with catalog._local.database.lock(), pytest.raises(Unavailable, match=r"held the lock of .*\.lock"):
            other.sync()
        assert other.sync().sessions == 1


@pytest.mark.parametrize("how", ["alone", "together"])
def test_a_forked_worker_does_not_hold_what_its_parent_held(home: Home, session: Session, how: str):
    with actors(("fork_inside", interior(home).store.folder, "one", how)) as (parent,):
        parent.go()
        worker = parent.hear()
        begin = time.monotonic()
        home.gc()
        session.checkpoint()
        assert time.monotonic() - begin < 5
        os.kill(worker, signal.SIGKILL)


def test_the_lock_of_a_log_is_free_when_its_holder_dies_whatever_it_forked(home: Home, session: Session):
    with actors(("fork_inside", interior(home).store.folder, "one", "log")) as (parent,):
        parent.go()
        worker = parent.hear()
        parent.send(signal.SIGKILL)
        begin = time.monotonic()
        session.note("at once")
        assert time.monotonic() - begin < 5
        os.kill(worker, signal.SIGKILL)


def test_a_reading_begun_before_a_fork_is_refused_in_the_child(session: Session):
    session.append(*(turnlog.Note(text="x" * 1000) for _ in range(300)))
    reading = history_of(session).log.read()
    next(reading)
    child = os.fork()
    if child == 0:
        try:
            list(reading)
        except Unavailable:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert len(list(reading)) > 200


def test_a_lock_of_our_own_is_named_as_such(tmp_path: Path):
    path = tmp_path / "file"
    path.touch()
    with disk.Disk().hold(str(path)) as held:
        assert name_holders(held.fileno()) == [f"this process ({os.getpid()})"]
    fd = os.open(path, os.O_RDONLY)
    assert name_holders(fd) == [], "nobody holds it any more"
    os.close(fd)
