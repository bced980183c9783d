"""Which session goes on under another id of its agent: what its log says counts, wherever the log came from."""

from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path

import pytest

import turnlog
from turnlog.log.draft import prepare
from turnlog.log.entry import Alias, Start
from turnlog.session.home import Home
from turnlog.session.interior import interior
from turnlog.thread.home.alias import append_alias, session_of, session_of_alias

AGENT = "claude-code"


def import_one(home: Home, native: str) -> str:
    """A session that is of another agent."""
    name = f"{AGENT}-{native}"
    origin = {"agent": AGENT, "id": native, "identity": native, "path": ""}
    start = Start(id=name, session=name, agent=AGENT, origin=origin)
    interior(home).creator.begin([start]).close()
    return name


def alias(native: str) -> Alias:
    return Alias(agent=AGENT, native=native, head=0, records=0)


def go_on(folder: Path, session: str, natives: list[str]) -> None:
    with turnlog.open(folder) as home:
        for native in natives:
            append_alias(interior(home).store, session, alias(native))


def test_two_processes_at_once_lose_none(tmp_path: Path):
    with turnlog.open(tmp_path) as home:
        sessions = [import_one(home, name) for name in ("one", "two")]
        session_of_alias(interior(home).store, AGENT, "nobody")
    natives = {session: [f"{session}-later-{number}" for number in range(12)] for session in sessions}
    context = get_context("spawn")
    workers = [context.Process(target=go_on, args=(tmp_path, *item)) for item in natives.items()]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    with turnlog.open(tmp_path) as home:
        for session, later in natives.items():
            assert {session_of_alias(interior(home).store, AGENT, native) for native in later} == {session}


def test_who_looked_before_and_writes_it_down_after_hides_nothing(tmp_path: Path):
    """What a slow reader keeps is of the logs as it saw them, and is not taken for those of now."""
    with turnlog.open(tmp_path) as home:
        session = import_one(home, "first")
        session_of_alias(interior(home).store, AGENT, "nobody")
        before = interior(home).store.load("aliases")
        append_alias(interior(home).store, session, alias("later"))
        interior(home).store.save("aliases", before)
        assert session_of_alias(interior(home).store, AGENT, "later") == session


@pytest.mark.parametrize("is_new", [True, False])
def test_an_alias_that_is_pulled_counts(tmp_path: Path, is_new: bool):
    with turnlog.open(tmp_path / "there") as there, turnlog.open(tmp_path / "here") as here:
        session = import_one(there, "first")
        import_one(here, "another")
        if not is_new:
            here.pull(there)
        assert session_of(interior(here).store, AGENT, "later") is None
        append_alias(interior(there).store, session, alias("later"))
        here.pull(there)
        assert session_of(interior(here).store, AGENT, "later") == session


@pytest.mark.parametrize("as_", [None, "another"])
def test_an_alias_of_a_session_that_was_restored_counts(tmp_path: Path, as_: str | None):
    with turnlog.open(tmp_path) as home:
        session = import_one(home, "first")
        import_one(home, "second")
        append_alias(interior(home).store, session, alias("later"))
        home.delete(session)
        interior(home).store.save("aliases", b"")
        assert session_of_alias(interior(home).store, AGENT, "later") is None
        home.restore(session, as_=as_)
        assert session_of_alias(interior(home).store, AGENT, "later") == (as_ or session)


@pytest.mark.parametrize("is_expired", [False, True])
def test_an_alias_of_a_session_that_is_gone_for_good_means_none(tmp_path: Path, is_expired: bool):
    with turnlog.open(tmp_path) as home:
        session = import_one(home, "first")
        append_alias(interior(home).store, session, alias("later"))
        if is_expired:
            home.expire(timedelta(0))
        else:
            home.purge(session)
        import_one(home, "first")
        assert session_of_alias(interior(home).store, AGENT, "later") is None


def test_a_session_of_a_later_version_hides_no_other(tmp_path: Path):
    with turnlog.open(tmp_path) as home:
        session = import_one(home, "first")
        origin = {"agent": AGENT, "id": "new", "identity": "new", "path": ""}
        later = Start(id="later", session="later", agent=AGENT, origin=origin, format=2)
        interior(home).store.create("later", [prepare(later)[0]]).close()
        append_alias(interior(home).store, session, alias("later"))
        assert session_of_alias(interior(home).store, AGENT, "later") == session
        assert session_of(interior(home).store, AGENT, "nobody") is None


def test_who_may_not_write_anything_does_not(tmp_path: Path):
    with turnlog.open(tmp_path) as home:
        import_one(home, "first")
        before = sorted(path for path in tmp_path.rglob("*"))
        assert session_of_alias(interior(home).store, AGENT, "later", remember=False) is None
        assert sorted(path for path in tmp_path.rglob("*")) == before


def test_a_store_without_a_cache_looks_each_time():
    home = turnlog.open("memory:")
    session = import_one(home, "first")
    assert session_of(interior(home).store, AGENT, "later") is None
    append_alias(interior(home).store, session, alias("later"))
    assert session_of(interior(home).store, AGENT, "later") == session
    assert session_of(interior(home).store, AGENT, "first") == session
