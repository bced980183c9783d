"""What every adapter stands on: one home, each session once, several steps in a row, and threads for who awaits."""

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from turnlog import Conflict, Invalid, Unsupported, aio
from turnlog.adapters._shelf import Closing, Shelf, check_id, framework, joined, parts_of
from turnlog.session.interior import interior


@pytest.fixture(params=["memory", "files"])
def home(request, tmp_path):
    with turnlog.open("memory:" if request.param == "memory" else tmp_path / "home") as home:
        yield home


def again(home, tmp_path):
    """The same home as another process has it."""
    return turnlog.Home(interior(home).store) if home.backend == "memory" else turnlog.open(tmp_path / "home")


def test_a_session_is_opened_once_and_by_its_whole_id(home):
    shelf = Shelf(home, "test")
    assert shelf.find("thread-1") is None
    made = shelf.make("thread-1", labels={"user": "ada"})
    assert made.labels == {"framework": "test", "user": "ada"}
    assert shelf.find("thread-1") is made
    assert shelf.find("thread") is None
    assert shelf.make("thread-1") is made


def test_what_others_write_is_there(home, tmp_path):
    shelf = Shelf(home, "test")
    made = shelf.make("a")
    again(home, tmp_path).resume("a").user("theirs")
    assert len(shelf.find("a").messages()) == 1
    assert shelf.find("a") is made


def test_a_session_that_others_purged_is_none_and_then_the_next_one(home, tmp_path):
    shelf = Shelf(home, "test")
    shelf.make("a").user("old")
    other = again(home, tmp_path)
    other.purge("a")
    assert shelf.find("a") is None
    other.create(id="a").user("new")
    assert [message.blocks[0].text for message in shelf.find("a").messages()] == ["new"]
    assert shelf.purge("a")
    assert not shelf.purge("a")


def test_refused_input_leaves_no_session_behind(home):
    shelf = Shelf(home, "test")
    with pytest.raises(Invalid):
        shelf.make("a", drafts=[turnlog.Message(role="nobody")])
    assert shelf.find("a") is None


def test_many_are_made_and_only_some_kept_open(home):
    shelf = Shelf(home, "test")
    held = shelf.make("s0")
    for number in range(1, 300):
        shelf.make(f"s{number}")
    held.user("still mine")
    assert len(shelf.find("s0").messages()) == 1


def test_a_home_that_was_given_stays_open_and_its_own_does_not(tmp_path):
    with turnlog.open(tmp_path) as home:
        given = Shelf(home, "test")
        given.make("a")
        given.close()
        assert home.resume("a").id == "a"
        own = Shelf(tmp_path, "test")
        session = own.find("a")
        own.close()
        assert session.is_closed
        for call in (lambda: own.home, lambda: own.find("a"), lambda: asyncio.run(own.run(int))):
            with pytest.raises(Invalid, match="closed"):
                call()


def test_an_asynchronous_home_will_do(tmp_path):
    async def work():
        async with aio.open(tmp_path) as home:
            shelf = Shelf(home, "test")
            session = await shelf.run(shelf.make, "a")
            await shelf.run(session.user, "hi")
            return len((await shelf.run(shelf.find, "a")).messages())

    assert asyncio.run(work()) == 1


def test_a_tilde_is_the_home_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    Shelf("~/kept", "test").make("a").user("hi")
    assert (tmp_path / "kept/sessions/a.jsonl").is_file()


def test_it_closes_itself(tmp_path):
    class Adapter(Closing):
        def __init__(self):
            self.shelf = Shelf(tmp_path, "test")

    with Adapter() as adapter:
        adapter.shelf.make("a")
    assert adapter.shelf.is_closed

    async def work():
        async with Adapter() as adapter:
            pass
        return adapter.shelf.is_closed

    assert asyncio.run(work())


def test_several_steps_are_one_threads_at_a_time(home):
    shelf = Shelf(home, "test")
    session = shelf.make("a")

    def count():
        for _ in range(25):
            with shelf.locked("a"), shelf.locked("a"):
                session.set("count", session.get("count", 0) + 1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session.get("count") == 100
    assert not shelf._locks


_PARTS = st.lists(st.text(alphabet="ab/%2F5", max_size=6), min_size=1, max_size=4)


@given(_PARTS, _PARTS)
def test_no_two_ids_of_several_parts_are_the_same(one, two):
    assert parts_of(joined(*one)) == one
    assert (joined(*one) == joined(*two)) == (one == two)


@pytest.mark.parametrize("odd", ["", None, 3, b"a"])
def test_an_id_is_a_text(odd):
    with pytest.raises(Invalid, match="thread_id"):
        check_id(odd, "thread_id")


def test_a_framework_that_is_not_there_says_what_to_install():
    with pytest.raises(Unsupported) as error:
        framework("no_such_framework", "langgraph")
    assert error.value.hint == "pip install 'turnlog[langgraph]'"


def test_a_conflict_is_no_reason_to_lose_a_session(home, tmp_path):
    shelf = Shelf(home, "test")
    session = shelf.make("a")
    again(home, tmp_path).resume("a").user("theirs")
    with pytest.raises(Conflict):
        session.user("mine")
    assert shelf.find("a").user("mine").seq
