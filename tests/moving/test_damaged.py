"""Damage: what can be read moves, what cannot is told, and copies do not disagree about it for ever."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import turnlog
from tests.moving.scene import everything, ids_in, lines, make, outcomes, said
from tests.pgserver import Server
from turnlog import Note
from turnlog.log.codec import Damage
from turnlog.log.written import WrittenLine
from turnlog.session import Home
from turnlog.session.interior import interior
from turnlog.store import derived


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Home, Home]]:
    here, there = make("files", tmp_path), make("files", tmp_path)
    yield here, there
    here.close()
    there.close()


def file_of(home: Home, name: str) -> Path:
    return Path(interior(home).store.folder) / "sessions" / f"{name}.jsonl"


def readable(home: Home, name: str) -> list[bytes]:
    return [
        item.line for item in interior(home).store.open(name, read_only=True).lines() if isinstance(item, WrittenLine)
    ]


def damage(home: Home, name: str) -> list[str]:
    return [item.kind for item in interior(home).store.open(name, read_only=True).read() if isinstance(item, Damage)]


def spoken(home: Home, *texts: str) -> None:
    with home.create(id="s") as session:
        for text in texts:
            session.user(text)


def change(home: Home, old: bytes, new: bytes) -> None:
    path = file_of(home, "s")
    data = path.read_bytes()
    assert data.count(old) == 1
    path.write_bytes(data.replace(old, new))


def test_what_is_garbled_stays_here_and_the_rest_comes(two: tuple[Home, Home]):
    here, there = two
    spoken(here, "one", "two", "three")
    change(here, b'"text":"two"', b'"text":"tw"o"')
    [row] = here.push(there)
    assert row.outcome == "new"
    assert [problem.split()[0] for problem in row.problems] == ["torn"]
    assert readable(there, "s") == readable(here, "s")
    assert damage(there, "s") == []
    with here.resume("s") as session:
        session.user("four")
    assert outcomes(here.push(there)) == {"s": "grown"}
    assert outcomes(here.pull(there)) == {"s": "same"}
    with there.resume("s") as session:
        session.user("five")
    assert outcomes(here.pull(there)) == {"s": "grown"}
    assert readable(there, "s") == readable(here, "s")
    assert list(derived.ids(interior(there).store)) == ["s"]


def test_what_was_damaged_in_the_copy_makes_no_fork(two: tuple[Home, Home]):
    here, there = two
    spoken(here, "one", "two", "three")
    here.push(there)
    change(there, b'"text":"two"', b'"text":"tw"o"')
    for _ in range(2):
        with here.resume("s") as session:
            session.user("more")
        assert outcomes(here.push(there)) == {"s": "grown"}
    assert len(readable(here, "s")) == len(readable(there, "s")) + 1
    assert outcomes(here.pull(there)) == {"s": "same"}


def test_an_end_that_was_lost_comes_again(two: tuple[Home, Home]):
    here, there = two
    spoken(here, "one", "two", "three")
    here.push(there)
    path = file_of(there, "s")
    path.write_bytes(path.read_bytes()[:-40])
    assert outcomes(here.push(there)) == {"s": "grown"}
    assert readable(there, "s") == lines(here, "s")
    assert said(there, "s") == ["one", "two", "three"]
    assert there.gc().blobs == 0  # what was torn is sealed off, so that nobody wonders what it referred to
    with there.resume("s") as session:
        session.user("four")
    here.pull(there)
    assert readable(here, "s") == readable(there, "s")
    assert damage(here, "s") == []


def test_a_crash_that_was_sealed_off_is_not_copied(two: tuple[Home, Home], postgres: Server, tmp_path: Path):
    here, there = two
    with here.create(id="s") as session:
        session.user("one")
        session.append(Note(text="a"), Note(text="b"))
    path = file_of(here, "s")
    path.write_bytes(path.read_bytes()[:-30])  # the batch is never finished
    with here.resume("s") as session:
        session.set("title", "later")
        session.user("two")
        session.append(Note(text="c"), Note(text="d"))
    assert b'"sealed"' in path.read_bytes()
    with make("postgres", tmp_path, postgres) as server:
        here.push(there)
        here.push(server)
        there.push(server)
        assert readable(here, "s") == lines(there, "s") == lines(server, "s")
        for home in (there, server):
            assert said(home, "s") == ["one", "two"]
            assert [info.title for info in home.sessions()] == ["later"]
        with server.resume("s") as session:
            session.user("three")
        here.pull(server)
        assert readable(here, "s") == lines(server, "s")
    assert b'"sealed"' not in file_of(there, "s").read_bytes()


def test_what_somebody_edited_stays_edited(two: tuple[Home, Home], postgres: Server, tmp_path: Path):
    here, there = two
    spoken(here, "one", "two", "three")
    change(here, b'"text":"two"', b'"text":"TWO"')
    with make("postgres", tmp_path, postgres) as server:
        for home in (there, server):
            [row] = here.push(home)
            assert "edited" in row.problems[0]
            assert damage(home, "s") == ["edited"]
            assert said(home, "s") == ["one", "TWO", "three"]
        with there.resume("s") as mine, server.resume("s") as theirs:
            mine.user("mine")
            theirs.user("theirs")
        server.push(there)
        assert len(list(derived.ids(interior(there).store))) == 2


def test_what_was_edited_stays_so_when_it_is_renumbered(two: tuple[Home, Home]):
    here, there = two
    spoken(here, "one")
    here.push(there)
    for home, text in ((here, "mine"), (there, "theirs")):
        with home.resume("s") as session:
            session.user(text)
    change(here, b'"text":"mine"', b'"text":"MINE"')
    [row] = here.push(there)
    assert row.into is not None
    assert damage(there, row.into) == ["edited"]
    assert said(there, row.into) == ["one", "MINE"]


def test_a_session_whose_first_line_is_lost_is_told_and_the_others_come(two: tuple[Home, Home]):
    here, there = two
    spoken(here, "one")
    here.create(id="t").close()
    change(here, b'{"type":"session"', b'{"type:"session"')
    rows = {row.id: row for row in here.push(there)}
    assert isinstance(rows["s"].error, turnlog.Corrupt)
    assert rows["s"].outcome == "failed"
    assert list(derived.ids(interior(there).store)) == ["t"]


def test_a_parent_that_cannot_be_sent_is_told_once_and_so_is_what_builds_on_it(two: tuple[Home, Home]):
    here, there = two
    spoken(here, "one")
    session = here.resume("s")
    session.fork(id="child").user("other")
    there.create(id="s").user("another one")
    for ids in (["child"], None):
        rows = [(row.id, row.outcome, row.error is not None) for row in here.push(there, ids)]
        assert sorted(rows) == [("child", "failed", True), ("s", "failed", True)]


def test_a_blob_that_is_gone_is_told(two: tuple[Home, Home]):
    here, there = two
    spoken(here, "one", "x" * 100_000)
    for pack in Path(interior(here).store.folder, "blobs").iterdir():
        pack.unlink()
    [row] = here.push(there)
    assert row.outcome == "new"
    assert len(row.problems) == 1 and "no blob" in row.problems[0]
    assert lines(there, "s") == lines(here, "s")


def test_two_that_sync_at_once_and_agents_that_go_on_meanwhile(tmp_path: Path, postgres: Server):
    places = [make("files", tmp_path) for _ in range(3)]
    server = make("postgres", tmp_path, postgres)
    with places[0].create(id="s") as session:
        session.user("one")
    for place in places:
        place.sync(server)
    errors: list[BaseException] = []
    barrier = threading.Barrier(4)
    made: set[str] = set()

    def sync(index: int) -> None:
        try:
            barrier.wait()
            for number in range(3):
                with places[index].resume("s") as session:
                    made.add(session.user(f"{index} says {number}").id)
                for rows in places[index].sync(server):
                    for row in rows:
                        assert row.error is None, row.error
        except BaseException as error:
            errors.append(error)

    def work() -> None:
        try:
            barrier.wait()
            for number in range(5):
                with server.resume("s") as session:
                    made.add(session.append(turnlog.Custom(kind="a.b", data=number), rebase=True).id)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=sync, args=(index,)) for index in range(3)] + [threading.Thread(target=work)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    for _ in range(2):
        for place in places:
            place.sync(server)
    for home in (*places, server):
        assert made <= ids_in(home)
    before = everything(server)
    for place in places:
        place.sync(server)
    assert everything(server) == before
    for home in (*places, server):
        home.close()


def test_an_unfinished_batch_of_somebody_else_makes_room(two: tuple[Home, Home]):
    here, there = two
    spoken(here, "one")
    here.push(there)
    with there.resume("s") as session:
        session.append(Note(text="theirs"), Note(text="never finished"))
    path = file_of(there, "s")
    path.write_bytes(path.read_bytes()[:-40])
    with here.resume("s") as session:
        session.append(Note(text="mine"), Note(text="mine too"), Note(text="and this"))
        session.user("two")
    assert outcomes(here.push(there)) == {"s": "grown"}
    assert lines(there, "s") == lines(here, "s")


def test_what_fails_is_told_once_whatever_builds_on_it(two: tuple[Home, Home]):
    here, there = two
    spoken(here, "one")
    session = here.resume("s")
    for name in ("child", "twin"):
        session.fork(id=name).user("other")
    there.create(id="s").user("another one")
    for ids in (["child", "twin"], None):
        rows = sorted((row.id, row.outcome) for row in here.push(there, ids))
        assert rows == [("child", "failed"), ("s", "failed"), ("twin", "failed")]


def test_each_fork_of_a_session_that_is_gone_says_so(two: tuple[Home, Home]):
    here, there = two
    spoken(here, "one")
    session = here.resume("s")
    for name in ("child", "twin"):
        session.fork(id=name).user("other")
    session.close()
    for path in Path(interior(here).store.folder).glob("*/s.jsonl"):
        path.unlink()
    errors = [row.error for row in here.push(there, ["child", "twin"])]
    assert [type(error) for error in errors] == [turnlog.NotFound] * 2
