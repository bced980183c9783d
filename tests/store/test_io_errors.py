"""Every call to the operating system fails once: a typed error comes out, and nothing that was there is harmed."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.crashlab import SESSIONS, Violation, check, fast_folder, home_at
from tests.store.faultlab import Caller, FailingDisk, ForgetfulDisk, said, work
from turnlog import Note, OutOfSpace, TurnlogError, Unavailable
from turnlog.log.draft import prepare
from turnlog.log.entry import AnyEntry
from turnlog.log.written import WrittenLine
from turnlog.session.interior import interior
from turnlog.store import derived
from turnlog.store.files import connect
from turnlog.store.files import disk as disk_module
from turnlog.store.files.handle import FileHandle

ERRORS = [errno.ENOSPC, errno.EIO, errno.EACCES]


@pytest.fixture
def folder() -> Iterator[str]:
    with fast_folder() as place:
        yield os.path.join(place, "home")


def descriptors(folder: str) -> list[str]:
    """What this process has open in a folder, where the system tells."""
    if not os.path.isdir("/proc/self/fd"):
        return []
    found: list[str] = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{fd}")
        except FileNotFoundError:
            continue
        if target.startswith(folder):
            found.append(target)
    return found


def run(at: int, error: int, *, for_ever: bool, attempts: int) -> FailingDisk:
    """One run of the sweep; raises if a promise was broken. Returns the disk, to see whether it failed at all."""
    with fast_folder() as place:
        folder = os.path.join(place, "new", "home")
        disk = FailingDisk(at=at, error=error, for_ever=for_ever)
        caller = Caller(folder, disk, attempts=attempts)
        work(caller)
        if attempts > 1 and not for_ever and caller.undone:
            raise Violation(f"{disk.failed}: no second attempt worked: {caller.undone}")
        disk.heal()
        caller.undone.clear()
        for session_id in caller.sessions:
            if caller.book.places[session_id] == {SESSIONS}:
                caller.append(session_id, said("the disk works again"))
        if caller.undone:
            raise Violation(f"{disk.failed}: the disk works again, but not {caller.undone}")
        caller.close()
        del caller.sessions
        deadline = time.monotonic() + 2
        while (leaked := descriptors(place)) and time.monotonic() < deadline:
            gc.collect()  # which does nothing while another thread collects
        if leaked:
            raise Violation(f"{disk.failed}: still open: {leaked}")
        if "unlink" not in disk.failed and (left := list(Path(place).rglob(".new-*"))):
            raise Violation(f"{disk.failed}: left behind: {left}")
        check(folder, caller.book)
        return disk


@pytest.mark.parametrize("attempts", [1, 3], ids=["tried once", "tried again"])
@pytest.mark.parametrize("for_ever", [False, True], ids=["fails once", "fails from then on"])
@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
def test_whatever_call_fails_nothing_acknowledged_is_lost(error: int, for_ever: bool, attempts: int):
    """Each call fails with one of the errors, in four ways; the soak tries all of them with all."""
    problems: list[str] = []
    number = 1 + ERRORS.index(error)
    while len(problems) < 20:
        disk: FailingDisk | None = None
        try:
            disk = run(number, error, for_ever=for_ever, attempts=attempts)
        except Exception as problem:
            problems.append(f"call {number}: {type(problem).__name__}: {problem}")
        if disk is not None and not disk.failed:
            break
        number += len(ERRORS)
    assert not problems, f"{len(problems)} of {number}:\n" + "\n".join(problems[:40])


# ── a sync that fails ─────────────────────────────────────────────────────────────────────────────


def append_until_acknowledged(disk: ForgetfulDisk, folder: str) -> Caller:
    caller = Caller(folder, disk, attempts=4)
    assert caller.open()
    caller.create("one")
    caller.append("one", said("a"))
    caller.append("one", said("b" * 5_000))
    caller.append("one", Note(text="1"), said("x" * 9_000), Note(text="3"))
    caller.append("one", Note(text="c"))
    caller.append("one", said("d"))
    assert not caller.undone
    return caller


@pytest.mark.parametrize("count", [1, 2], ids=["one fails", "two in a row fail"])
def test_what_is_retried_after_a_failed_sync_is_on_the_disk(count: int):
    number, is_over = 0, False
    while not is_over:
        number += 1
        with fast_folder() as folder:
            failing = range(number, number + count)
            disk = ForgetfulDisk(fails=lambda sync, failing=failing: sync in failing)
            caller = append_until_acknowledged(disk, folder)
            is_over = disk.syncs < number
            assert not disk.used_after, "a descriptor was used again after its sync had failed"
            caller.close()
            disk.reboot(folder)
            check(folder, caller.book)
    assert number > 5


def test_after_a_failed_sync_every_node_hangs_on_one_that_is_there(folder: str):
    disk = ForgetfulDisk(fails=lambda sync: sync in (3, 5))
    caller = append_until_acknowledged(disk, folder)
    entries = list(caller.sessions["one"].entries())
    seqs = {entry.seq for entry in entries}
    assert all(not entry.parent or (entry.parent in seqs and entry.parent < entry.seq) for entry in entries)
    assert [message.blocks[0].text[0] for message in caller.sessions["one"].messages()] == ["a", "b", "x", "d"]


def test_what_could_not_be_synced_is_written_again_behind_what_others_wrote(folder: str):
    disk = ForgetfulDisk()
    session = home_at(folder, disk).create(id="one")
    session.user("begin")
    other = interior(home_at(folder, disk)).store.open("one")
    note, _ = prepare(Note(text="somebody else was here"))
    written: list[AnyEntry] = []
    disk.before_failure = lambda: written.extend(other.append([note], after=1 << 40, head=0))
    draft = said("b" * 5_000)
    with pytest.raises(Unavailable):
        session.append(draft)
    assert session.append(draft).seq > written[-1].seq
    with pytest.raises(Unavailable):
        other.sync(written[-1].seq)
    other.append([note], after=1 << 40, head=0)
    after = session.user("after")
    for rebooted in (False, True):
        if rebooted:
            disk.reboot(folder)
        again = home_at(folder).resume("one")
        ids = [entry.id for entry in again.entries()]
        assert [ids.count(entry_id) for entry_id in (draft.id, note.id, after.id)] == [1, 1, 1]
        assert [message.blocks[0].text[:5] for message in again.messages()] == ["begin", "bbbbb", "after"]


def test_a_fork_does_not_build_on_what_could_not_be_synced(folder: str):
    disk = ForgetfulDisk()
    session = home_at(folder, disk).create(id="one")
    session.user("begin")
    disk.fail_next = True
    with pytest.raises(Unavailable):
        session.user("lost")
    fork = session.fork(id="two")
    session.user("only here")
    texts = [message.blocks[0].text for message in home_at(folder).resume(fork.id).messages()]
    assert texts in (["begin"], ["begin", "lost"])
    disk.reboot(folder)
    assert [message.blocks[0].text for message in home_at(folder).resume(fork.id).messages()] == texts


def test_a_failed_sync_of_a_line_that_seals_does_not_keep_the_lock(folder: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(disk_module, "LOCK_WAIT_S", 2)
    disk = ForgetfulDisk()
    session = home_at(folder, disk).create(id="one")
    session.user("begin")
    path = os.path.join(folder, "sessions", "one.jsonl")
    with open(path, "ab") as file:
        file.write(b'{"type":"message","seq":4,"at')
    disk.fail_next = True
    draft = Note(text="seals")
    with pytest.raises(Unavailable):
        session.append(draft)
    home_at(folder).resume("one").note("the lock is free")  # before the descriptor that was given up is closed
    session.append(draft)


def test_a_descriptor_that_is_given_up_keeps_no_lock_while_another_thread_uses_it(folder: str):
    home_at(folder).create(id="one")
    path, disk = os.path.join(folder, "sessions", "one.jsonl"), disk_module.Disk()
    handle, other = (FileHandle(disk, path, read_only=False, fd=-1) for _ in range(2))
    handle.open()
    other.open()
    disk.lock(handle.fd)
    handle.abandon()
    assert len(handle.abandoned) == 1, "it is still open"
    assert disk.try_lock(other.fd)
    for one in (handle, other):
        one.close()


def test_a_retry_by_another_object_of_this_process_counts_once(folder: str):
    home = home_at(folder)
    draft = said("hello")
    first = home.create(id="one")
    first.append(draft)
    first.note("after")
    home.resume("one").append(draft)
    entries = [entry.id for entry in home.resume("one").entries()]
    assert entries.count(draft.id) == 1


# ── a full disk ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("error", "kind"),
    [(errno.ENOSPC, OutOfSpace), (errno.EDQUOT, OutOfSpace), (errno.EFBIG, OutOfSpace), (errno.EIO, Unavailable)],
    ids=lambda value: errno.errorcode.get(value) if isinstance(value, int) else "",
)
def test_a_write_that_fails_is_cut_back_to_the_byte(folder: str, error: int, kind: type[TurnlogError]):
    disk = FailingDisk(at=0, error=error, only="write_once")
    session = home_at(folder, disk).create(id="one")
    session.note("works")
    path = Path(folder, "sessions", "one.jsonl")
    before = path.read_bytes()
    disk.break_now()
    with pytest.raises(kind):
        session.note("does not")
    assert path.read_bytes() == before


def test_a_write_that_can_not_even_be_cut_back_is_sealed_off(folder: str):
    disk = FailingDisk(at=0, for_ever=True)
    session = home_at(folder, disk).create(id="one")
    first = session.user("first")
    disk.break_now()
    with pytest.raises(Unavailable):
        session.user("never")
    disk.heal()
    last = session.user("last")
    again = home_at(folder).resume("one")
    assert [message.id for message in again.messages()] == [first.id, last.id]


def test_what_is_kept_of_a_purged_session_stays_aside_if_its_rest_cannot_be_written(folder: str):
    disk = FailingDisk(at=0, error=errno.ENOSPC, only="write_once")
    with home_at(folder, disk) as home:
        session = home.create(id="one")
        entries = [session.user(text) for text in ("kept", "gone", "gone as well")]
        session.fork(at=entries[0], id="fork")
        store = interior(home).store
        lines = [item.line for item in store.open("one").lines(after=entries[0].seq) if isinstance(item, WrittenLine)]
        first = next(store.listing(ids=["one"])).first
        home.purge("one")
        disk.break_now()
        with pytest.raises(OutOfSpace):
            store.adopt("one", lines, after=entries[0].seq, first=first)
        assert [row.id for row in home.sessions()] == ["fork"]
        assert [row.id for row in store.listing("aside")] == ["one"]
        store.adopt("one", lines, after=entries[0].seq, first=first)
        assert [entry.id for entry in home.resume("one").messages()] == [entry.id for entry in entries]


def test_a_real_limit_of_the_system_is_a_full_disk(tmp_path: Path):
    program = """
import resource, signal, sys, turnlog
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
session = turnlog.open(sys.argv[1]).create(id="one")
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
done = []
try:
    while True:
        done.append(session.note("x" * 1_000).id)
except turnlog.OutOfSpace:
    print(*done)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, check=True, text=True, timeout=60
    ).stdout.split()
    session = home_at(str(tmp_path)).resume("one")
    assert [entry.id for entry in session.entries(kind="note")] == done
    assert not session.damage
    session.note("the limit was another process's")


def test_health_says_what_is_wrong_in_a_word_and_in_a_sentence(tmp_path: Path):
    """With the same fields as PostgreSQL."""

    class Full(disk_module.Disk):
        def write(self, fd: int, data: bytes) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    store = connect(str(tmp_path), disk=Full())
    health = derived.health(store)
    assert (health["ok"], health["reason"]) == (False, OutOfSpace.code)
    assert "No space left" in health["problem"] and health["hint"]
    assert derived.health(connect(str(tmp_path)))["ok"] is True
