"""Ids that are used again: after a purge, beside the trash, and what forks and copies make of it."""

import threading

import pytest

import turnlog
from turnlog import AlreadyExists, Corrupt, NotFound
from turnlog.log.context import text_of


def said(session) -> list[str]:
    return [text_of(message.blocks) for message in session.messages()]


def test_a_purged_id_is_free_although_forks_build_on_it(home):
    for number in range(3):
        session = home.create(id="nightly")
        session.user(f"said {number}")
        session.fork(id=f"fork {number}").user("on")
        home.purge("nightly")
    home.create(id="nightly").user("now")
    for number in range(3):
        assert said(home.resume(f"fork {number}")) == [f"said {number}", "on"]
    assert said(home.resume("nightly")) == ["now"]
    home.gc()
    for number in range(3):
        home.resume(f"fork {number}").fork(id=f"grandchild {number}")
        home.purge(f"fork {number}")
        assert said(home.resume(f"grandchild {number}")) == [f"said {number}", "on"]


def test_every_session_has_a_first_entry_of_its_own(home):
    firsts = []
    for _ in range(2):
        session = home.create(id="nightly")
        firsts.append(next(iter(session.entries())).id)
        home.purge("nightly")
    assert len({*firsts, "nightly"}) == 3


def test_a_deleted_session_waits_for_another_id(home):
    first = home.create(id="nightly", title="The first", labels={"a": "b"})
    first.user("one")
    first.set("mood", "good")
    first.rewind(to=first.user("two"))
    entries = [entry.id for entry in first.entries()][1:]
    home.delete("nightly")
    home.create(id="nightly").user("the second")
    with pytest.raises(AlreadyExists) as caught:
        home.restore("nightly")
    assert "--as" in caught.value.hint
    with pytest.raises(AlreadyExists):
        home.restore("nightly", as_="nightly")
    home.create(id="taken")
    with pytest.raises(AlreadyExists):
        home.restore("nightly", as_="taken")
    assert [info.id for info in home.sessions(deleted=True)] == ["nightly"]
    home.restore("nightly", as_="the first")
    assert home.sessions(deleted=True) == []
    again = home.resume("the first")
    assert (again.title, again.labels, again.get("mood")) == ("The first", {"a": "b"}, "good")
    assert [entry.id for entry in again.entries()][1:] == entries
    assert said(again) == ["one", "two"]
    assert again.undo()
    assert said(home.resume("nightly")) == ["the second"]


def test_a_fork_comes_back_under_another_id_with_what_it_builds_on(home):
    parent = home.create(id="parent")
    parent.user("one")
    fork = parent.fork(id="fork")
    fork.user("two")
    child = fork.fork(id="child")
    child.user("three")
    home.delete("fork")
    home.purge("parent")
    home.create(id="fork").user("another")
    home.restore("fork", as_="back")
    assert said(home.resume("back")) == ["one", "two"]
    assert said(home.resume("child")) == ["one", "two", "three"]
    home.purge("back")
    home.purge("fork")
    assert said(home.resume("child")) == ["one", "two", "three"]


@pytest.mark.parametrize("name", ["", "x" * 5000, 7])
def test_another_id_has_to_be_one(home, name):
    home.create(id="s").user("one")
    home.delete("s")
    with pytest.raises(turnlog.Invalid, match="session id"):
        home.restore("s", as_=name)
    home.restore("s")
    assert said(home.resume("s")) == ["one"]


def test_what_is_not_there_is_not_restored_as_anything(home):
    home.create(id="s")
    with pytest.raises(NotFound):
        home.restore("s", as_="other")
    assert [info.id for info in home.sessions()] == ["s"]


def test_a_damaged_session_is_repaired_before_it_gets_another_id(files):
    with files.open() as home:
        session = home.create(id="s")
        for text in ("one", "two", "three"):
            session.user(text)
        path = files.path(session)
        session.close()
        home.delete("s")
        trash = path.parent.parent / "trash" / path.name
        trash.write_bytes(trash.read_bytes().replace(b'"text":"two"', b'"text":"tw"o"'))
        with pytest.raises(Corrupt, match="damaged"):
            home.restore("s", as_="other")
        assert trash.exists()
        assert home.sessions() == []


def test_two_who_restore_and_create_at_once_replace_nothing(files):
    with files.open() as home:
        for number in range(20):
            name = f"s{number}"
            home.create(id=name).user("deleted")
            home.delete(name)
            barrier = threading.Barrier(2)
            done = []

            def create(name=name, barrier=barrier, done=done) -> None:
                barrier.wait()
                try:
                    home.create(id=name).user("created")
                    done.append("created")
                except AlreadyExists:
                    pass

            thread = threading.Thread(target=create)
            thread.start()
            barrier.wait()
            try:
                home.restore(name)
                done.append("deleted")
            except AlreadyExists:
                pass
            thread.join()
            assert len(done) == 1
            assert said(home.resume(name)) == done
            assert len(home.sessions(deleted=True)) == (done == ["created"])
            if done == ["created"]:
                home.purge(name, deleted=True)
