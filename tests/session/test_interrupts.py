"""Ctrl-C, or an exception from a signal's handler, in the wrong microsecond: a sample here, every point in the soak."""

from __future__ import annotations

import gc
import os
import random
import sys
import time
from pathlib import Path

import pytest

import turnlog
from tests.session.interruptlab import Interrupt, Interrupter, locked_files, quiet, room
from tests.session.interruptscenes import SCENES, errors_for, live
from turnlog import Session
from turnlog.session.interior import interior
from turnlog.store.files.disk import Disk

_SAMPLE = 12
pytestmark = pytest.mark.skipif(
    sys.version_info[:2] == (3, 14), reason="Python 3.14 may be interrupted between taking a lock and its block"
)


@pytest.mark.parametrize("name", SCENES)
def test_after_an_interrupt_anywhere_object_log_and_reader_agree_and_nobody_is_kept_out(name: str):
    live(name, 0, Interrupt)  # what is imported or remembered the first time is there then
    points = live(name, 0, Interrupt)
    for at in random.sample(range(1, points + 1), _SAMPLE):
        live(name, at, random.choice(errors_for(name)))


def test_the_lab_interrupts_where_python_does():
    """A lock that is taken before the `try`, and one whose `finally` calls a function, are left behind somewhere."""

    class Careless:
        is_locked = False

        def lock(self) -> None:
            self.is_locked = bool(os.getpid())
            os.getpid()

        def unlock(self) -> None:
            self.is_locked = False

        def work(self) -> None:
            self.lock()
            try:
                os.getpid()
            finally:
                self.unlock()

    found: set[str] = set()
    for at in range(1, 10):
        lock = Careless()
        interrupter = Interrupter(at, Interrupt)
        with pytest.raises(Interrupt) if at <= interrupter_points(Careless().work) else _nothing():
            interrupter.run(lock.work)
        if lock.is_locked:
            found.add(interrupter.where.split(": ")[1].split(" in ")[0])
    assert found == {"c_return", "call"}


def interrupter_points(act) -> int:
    interrupter = Interrupter(0, Interrupt)
    interrupter.run(act)
    return interrupter.count


class _nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...


@pytest.fixture
def session(tmp_path: Path) -> Session:
    session = turnlog.open(tmp_path).create(id="one")
    session.user("begin")
    return session


def test_a_lock_is_free_while_the_interrupt_is_still_on_its_way_up(session: Session):
    """Who keeps the exception, as a shell does, keeps its frames as well, and nobody must wait for those."""
    points = interrupter_points(lambda: session.user("again"))
    kept: list[BaseException] = []
    with room() as folder, quiet():
        home = turnlog.open(folder)
        for at in range(1, points, 3):
            one = home.create(id=f"s{at}")
            one.user("begin")
            try:
                Interrupter(at, Interrupt).run(lambda one=one: one.user("again"))
            except Interrupt as error:
                kept.append(error)
        assert len(kept) > 20
        assert not locked_files(folder)
        home.close()
        kept.clear()
        gc.collect()


def test_the_blobs_are_free_while_the_interrupt_is_still_on_its_way_up():
    kept: list[BaseException] = []
    with room() as folder, quiet():
        store = interior(turnlog.open(folder)).store

        def keep() -> None:
            with store.keeping():
                os.getpid()
            with store._blobs.exclusive():
                os.getpid()

        keep()
        for at in range(1, interrupter_points(keep) + 1):
            try:
                Interrupter(at, Interrupt).run(keep)
            except Interrupt as error:
                kept.append(error)
            assert not locked_files(folder), kept[-1]
            with store.keeping():
                assert locked_files(folder) == [".blobs.lock"], "nobody is taken to be alone who no longer is"
        assert len(kept) > 20


class ClosesOnce(Disk):
    """Remembers what is open, and does not close it twice."""

    def __init__(self) -> None:
        self.files: set[int] = set()

    def open(self, path: str, flags: int, *, create: bool = False) -> int:
        fd = super().open(path, flags, create=create)
        self.files.add(fd)
        return fd

    def close(self, fd: int) -> None:
        self.files.remove(fd)
        os.close(fd)


def test_a_pack_closes_its_file_once_wherever_it_is_interrupted(tmp_path: Path):
    from turnlog.store.files.packs import Packs
    from turnlog.store.files.packwriter import PackWriter

    disk, number = ClosesOnce(), 0

    def write() -> None:
        nonlocal number
        number += 1
        with PackWriter(Packs(disk, str(tmp_path))) as add:
            add(b"%d" % number * 1000)

    write()
    for at in range(1, interrupter_points(write) + 1):
        with pytest.raises(Interrupt):
            Interrupter(at, Interrupt).run(write)
        gc.collect(0)
        assert not list(tmp_path.glob(".new-*")), f"point {at}"


def test_what_a_dead_process_left_where_sessions_are_is_swept_up(tmp_path: Path, session: Session):
    old, young, theirs = (
        tmp_path / "sessions" / name for name in (".new-" + "a" * 16, ".new-" + "b" * 16, ".new-mine")
    )
    for path in (old, young, theirs):
        path.write_bytes(b"half")
    for path in (old, theirs):
        os.utime(path, (time.time() - 7200,) * 2)
    turnlog.open(tmp_path).gc()
    assert not old.exists()
    assert young.exists(), "somebody may be writing it"
    assert theirs.exists(), "we give no such names"
