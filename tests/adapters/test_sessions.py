"""What every adapter stands on: one home, each session once, several steps in a row, and threads for who awaits."""

import asyncio
import gc
import threading
import weakref

import pytest

import turnlog
from turnlog import Conflict, Invalid, Unavailable, aio
from turnlog.adapters import _sessions as sessions_module
from turnlog.adapters._sessions import AdapterSessions, ClosableAdapter
from turnlog.session.interior import interior


@pytest.fixture(params=["memory", "files"])
def home(request, tmp_path):
    with turnlog.open("memory:" if request.param == "memory" else tmp_path / "home") as home:
        yield home


def again(home, tmp_path):
    """The same home as another process has it."""
    return turnlog.Home(interior(home).store) if home.backend == "memory" else turnlog.open(tmp_path / "home")


def test_a_session_is_opened_once_and_by_its_whole_id(home):
    sessions = AdapterSessions(home, "test")
    assert sessions.find("thread-1") is None
    made = sessions.create("thread-1", labels={"user": "ada"})
    assert made.labels == {"framework": "test", "user": "ada"}
    assert sessions.find("thread-1") is made
    assert sessions.find("thread") is None
    assert sessions.create("thread-1") is made


def test_what_others_write_is_there(home, tmp_path):
    sessions = AdapterSessions(home, "test")
    made = sessions.create("a")
    again(home, tmp_path).resume("a").user("theirs")
    assert len(sessions.find("a").messages()) == 1
    assert sessions.find("a") is made


def test_a_session_that_others_purged_is_none_and_then_the_next_one(home, tmp_path):
    sessions = AdapterSessions(home, "test")
    sessions.create("a").user("old")
    other = again(home, tmp_path)
    other.purge("a")
    assert sessions.find("a") is None
    other.create(id="a").user("new")
    assert [message.blocks[0].text for message in sessions.find("a").messages()] == ["new"]
    assert sessions.purge("a")
    assert not sessions.purge("a")


def test_a_session_that_its_caller_closed_is_opened_again(home, tmp_path):
    sessions = AdapterSessions(home, "test")
    with sessions.create("a") as made:
        made.user("one")
    sessions.find("a").user("two")
    assert sessions.find("a") is sessions.find("a") is not made
    assert len(sessions.find("a", fresh=False).messages()) == 2
    other = again(home, tmp_path).resume("a")
    assert sessions.hold(other) is sessions.find("a")
    assert other.is_closed, "it lost the race"


def test_refused_input_leaves_no_session_behind(home):
    sessions = AdapterSessions(home, "test")
    with pytest.raises(Invalid):
        sessions.create("a", drafts=[turnlog.Message(role="nobody")])
    assert sessions.find("a") is None


def test_many_are_made_and_only_some_kept_open(home):
    sessions = AdapterSessions(home, "test")
    held = sessions.create("s0")
    others = [weakref.ref(sessions.create(f"s{number}")) for number in range(1, 300)]
    gc.collect()
    assert sum(ref() is not None for ref in others) == 256
    held.user("still mine")
    assert len(sessions.find("s0").messages()) == 1


def test_a_home_that_was_given_stays_open_and_its_own_does_not(tmp_path):
    with turnlog.open(tmp_path) as home:
        given = AdapterSessions(home, "test")
        given.create("a")
        given.close()
        assert home.resume("a").id == "a"
        own = AdapterSessions(tmp_path, "test")
        session = own.find("a")
        own.close()
        assert session.is_closed
        for call in (lambda: own.home, lambda: own.find("a"), lambda: asyncio.run(own.run(int))):
            with pytest.raises(Invalid, match="closed"):
                call()


def test_an_asynchronous_home_will_do(tmp_path):
    async def work():
        async with aio.open(tmp_path) as home:
            sessions = AdapterSessions(home, "test")
            session = await sessions.run(sessions.create, "a")
            await sessions.run(session.user, "hi")
            return len((await sessions.run(sessions.find, "a")).messages())

    assert asyncio.run(work()) == 1


def test_a_tilde_is_the_home_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    AdapterSessions("~/kept", "test").create("a").user("hi")
    assert (tmp_path / "kept/sessions/a.jsonl").is_file()


def test_it_closes_itself(tmp_path):
    class Adapter(ClosableAdapter):
        def __init__(self):
            self.sessions = AdapterSessions(tmp_path, "test")

    with Adapter() as adapter:
        adapter.sessions.create("a")
    assert adapter.sessions.is_closed

    async def work():
        async with Adapter() as adapter:
            pass
        return adapter.sessions.is_closed

    assert asyncio.run(work())


def test_several_steps_are_one_threads_at_a_time(home):
    sessions = AdapterSessions(home, "test")
    session = sessions.create("a")

    def count():
        for _ in range(25):
            with sessions.locked("a"), sessions.locked("a"):
                session.set("count", session.get("count", 0) + 1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session.get("count") == 100
    assert not sessions._locks


def test_a_conflict_is_no_reason_to_lose_a_session(home, tmp_path):
    sessions = AdapterSessions(home, "test")
    session = sessions.create("a")
    again(home, tmp_path).resume("a").user("theirs")
    with pytest.raises(Conflict):
        session.user("mine")
    assert sessions.find("a").user("mine").seq


def test_the_event_loop_does_not_wait_while_a_home_is_opened(tmp_path, monkeypatch):
    opening, go_on = threading.Event(), threading.Event()
    real = sessions_module.open_home

    def slow(location):
        opening.set()
        assert go_on.wait(20)
        return real(location)

    monkeypatch.setattr(sessions_module, "open_home", slow)
    sessions = AdapterSessions(tmp_path / "home", "test")

    async def work():
        first = asyncio.ensure_future(sessions.run(lambda: sessions.home))
        await asyncio.to_thread(opening.wait, 20)
        assert await asyncio.wait_for(sessions.run(lambda: 1), 20) == 1
        go_on.set()
        return await first

    assert asyncio.run(work()) is sessions.home
    sessions.close()


def test_a_home_that_is_opened_while_its_store_is_closed_is_closed_again(tmp_path, monkeypatch):
    sessions = AdapterSessions(tmp_path / "home", "test")
    opened = []
    real = sessions_module.open_home

    def closed_meanwhile(location):
        sessions.close()
        opened.append(real(location))
        return opened[0]

    monkeypatch.setattr(sessions_module, "open_home", closed_meanwhile)
    with pytest.raises(Invalid, match="closed"):
        _ = sessions.home
    with pytest.raises(Invalid, match="closed"):
        opened[0].create()


def test_a_listing_has_forks_made_with_turnlog_and_no_session_of_others(home):
    sessions = AdapterSessions(home, "test")
    made = sessions.create("a")
    made.user("hi")
    made.fork(id="fork")
    home.create(id="theirs", agent="test")
    AdapterSessions(home, "other").create("b").fork(id="c")
    assert {info.id for info in sessions.infos()} == {"a", "fork"}


def test_a_session_that_cannot_be_closed_keeps_nothing_else_open(tmp_path, monkeypatch):
    sessions = AdapterSessions(tmp_path / "home", "test")
    home, (first, second) = sessions.home, [sessions.create(name) for name in "ab"]

    def broken():
        raise Unavailable("the disk is gone")

    monkeypatch.setattr(first, "close", broken)
    with pytest.raises(Unavailable):
        sessions.close()
    assert second.is_closed
    with pytest.raises(Invalid, match="closed"):
        home.sessions()
