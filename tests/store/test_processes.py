"""Several processes at one home: nothing is lost, nothing is mixed, and who came too late is told."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import turnlog
from tests.store.actors import actors, at_once
from turnlog import Conflict, Home, Image, NotFound, Session
from turnlog.session.interior import interior
from turnlog.store.files import connect
from turnlog.store.files.disk import Disk


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return turnlog.open(tmp_path).create(id="one")


def seqs_of(session: Session) -> list[int]:
    seqs = [entry.seq for entry in session.entries()]
    assert seqs == sorted(set(seqs))
    return seqs


def test_marks_of_several_processes_all_arrive(tmp_path: Path, session: Session):
    names = ["a", "b", "c", "d"]
    told = at_once(*(("notes", tmp_path, "one", name, 60) for name in names))
    session.refresh()
    assert set(seqs_of(session)) >= {seq for seqs in told for seq in seqs}
    found: dict[str, list[str]] = {name: [] for name in names}
    for note in session.entries(kind=turnlog.Note):
        name, number, rest = note.text.split(" ")
        assert rest == name * (int(number) * 97 % 6_000)
        found[name].append(number)
    assert found == {name: [str(n) for n in range(60)] for name in names}
    assert not session.damage


def test_nodes_of_several_processes_make_one_conversation(tmp_path: Path, session: Session):
    names = ["a", "b", "c"]
    at_once(*(("nodes", tmp_path, "one", name, 25) for name in names))
    session.refresh()
    texts = [message.blocks[0].text for message in session.messages()]
    assert sorted(texts) == sorted(f"{name} {n}" for name in names for n in range(25))
    for name in names:
        assert [text for text in texts if text[0] == name] == [f"{name} {n}" for n in range(25)]


def test_a_conflict_names_the_process_that_was_faster(tmp_path: Path, session: Session):
    session.user("begin")
    with actors(("nodes", tmp_path, "one", "other", 1)) as (other,):
        other.go()
        (seq,) = other.hear()
        with pytest.raises(Conflict, match=rf"entry {seq} .*process {other.pid} on "):
            session.user("too late")
    session.note("a mark is never too late")
    session.refresh()
    assert session.user("now").parent == seq


def test_collecting_blobs_takes_nothing_that_a_writer_needs(tmp_path: Path, session: Session):
    home = turnlog.open(tmp_path)
    with actors(*(("images", tmp_path, "one", name, 30) for name in "ab")) as writers:
        for writer in writers:
            writer.go()
        for number in range(15):
            home.put_blob(f"rubbish {number}".encode())
            home.gc()
        assert [len(writer.hear()) for writer in writers] == [30, 30]
    home.gc()
    session.refresh()
    found = [message.blocks[0] for message in session.messages()]
    assert len(found) == 60
    assert all(len(turnlog.open(tmp_path).get_blob(image.blob)) == 60 for image in found if isinstance(image, Image))


def test_several_processes_make_many_sessions_at_once(tmp_path: Path):
    home = turnlog.open(tmp_path / "new" / "home")
    told = at_once(*(("sessions", tmp_path / "new" / "home", name, 15) for name in ("a", "b", "c", "d")))
    made = {session_id for ids in told for session_id in ids}
    assert len(made) == 60
    assert {info.id for info in home.sessions()} == made
    for session_id in made:
        (message,) = home.resume(session_id).messages()
        assert message.blocks[0].text == f"hello from {session_id}"


def test_of_eight_processes_that_create_one_id_one_wins(tmp_path: Path):
    told = at_once(*(("create", tmp_path, "one") for _ in range(8)))
    assert Counter(seq is None for seq in told) == {True: 7, False: 1}
    home = turnlog.open(tmp_path)
    assert [info.id for info in home.sessions()] == ["one"]
    assert len(home.resume("one").messages()) == 1
    assert not [path for path in tmp_path.rglob(".new-*")]


def test_a_forked_process_and_its_parent_both_append(tmp_path: Path, session: Session):
    ((parent, child, code),) = at_once(("forks", tmp_path, "one", 20))
    assert code == 0
    session.refresh()
    texts = [message.blocks[0].text for message in session.messages()]
    assert len(texts) == 41
    for name in ("child", "parent"):
        assert [text for text in texts if text.startswith(name)] == [f"{name} {n}" for n in range(20)]
    assert {parent, child} <= {writer.pid for writer in session.entries(kind="writer")}
    seqs_of(session)


def test_a_process_forked_while_threads_append_can_append(tmp_path: Path, session: Session):
    (codes,) = at_once(("forks_with_threads", tmp_path, "one", 12))
    assert codes == [0] * 12
    assert [n.text for n in session.entries(kind="note") if n.text[0] == "c"] == [f"child {n}" for n in range(12)]
    seqs_of(session)


class ActsBeforeListing(Disk):
    """Lets something else happen just before it lists the trash."""

    def __init__(self) -> None:
        self.acts: list[Callable[[], object]] = []

    def listdir(self, path: str) -> list[str]:
        if path.endswith("trash") and self.acts:
            self.acts.pop()()
        return os.listdir(path)


@pytest.mark.parametrize("move", ["delete", "restore"])
def test_a_session_that_is_moved_while_blobs_are_collected_keeps_its_blobs(tmp_path: Path, session: Session, move: str):
    session.user([Image("image/png", data=b"needed")])
    if move == "restore":
        turnlog.open(tmp_path).delete("one")
    mover = threading.Thread(target=lambda: getattr(turnlog.open(tmp_path), move)("one"))
    disk = ActsBeforeListing()
    home = Home(connect(str(tmp_path), disk=disk))

    def begin_to_move() -> None:
        mover.start()
        mover.join(0.3)

    disk.acts = [begin_to_move]
    home.gc()
    mover.join()
    if move == "delete":
        home.restore("one")
    (message,) = turnlog.open(tmp_path).resume("one").messages()
    assert home.get_blob(message.blocks[0].blob) == b"needed"


def test_a_fork_that_is_restored_while_its_parent_is_purged_keeps_what_it_needs(tmp_path: Path, session: Session):
    session.user("common")
    session.fork(id="two")
    turnlog.open(tmp_path).delete("two")
    mover = threading.Thread(target=lambda: turnlog.open(tmp_path).restore("two"))
    disk = ActsBeforeListing()
    home = Home(connect(str(tmp_path), disk=disk))

    def begin_to_move() -> None:
        mover.start()
        mover.join(0.3)

    disk.acts = [begin_to_move]
    interior(home).store.purge("one")
    mover.join()
    assert len(turnlog.open(tmp_path).resume("two").messages()) == 1


class ActsBeforeLocking(Disk):
    """Lets something else happen just before it takes a lock."""

    def __init__(self) -> None:
        self.acts: list[Callable[[], object]] = []

    def lock(self, fd: int) -> None:
        if self.acts:
            self.acts.pop()()
        super().lock(fd)


def test_a_fork_made_while_its_parent_is_purged_has_all_or_is_refused(tmp_path: Path, session: Session):
    session.user("common")
    session.fork(id="early")
    session.user("needed by the late fork only")
    disk = ActsBeforeLocking()
    home = Home(connect(str(tmp_path), disk=disk))
    parent = home.resume("one")
    disk.acts = [lambda: turnlog.open(tmp_path).purge("one")]
    try:
        late = parent.fork(id="late")
    except NotFound:
        assert "late" not in {info.id for info in turnlog.open(tmp_path).sessions()}
    else:
        assert len(turnlog.open(tmp_path).resume(late.id).messages()) == 2


def test_a_purge_keeps_what_a_fork_needs_even_if_it_cannot_read_the_fork(tmp_path: Path, session: Session):
    session.user("common")
    fork = session.fork(id="two")
    path = tmp_path / "sessions" / "two.jsonl"
    data = path.read_bytes()
    path.write_bytes(b"\0" * 40 + data[40:])
    home = turnlog.open(tmp_path)
    try:
        home.purge("one")
    except turnlog.TurnlogError:
        pass  # refusing is as good as keeping
    path.write_bytes(data)
    assert len(home.resume(fork.id).messages()) == 1
