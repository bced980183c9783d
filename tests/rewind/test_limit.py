"""A home that agents fill by themselves stays below its limit, and loses what is worth least first."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import turnlog
from turnlog import Home, Session
from turnlog.errors import Invalid
from turnlog.machine.process import this_process
from turnlog.machine.space import SPARE_BYTES, Space, set_limit, size_of, space
from turnlog.rewind.coverage import Coverage
from turnlog.rewind.relay import TurnRelay, worker_of
from turnlog.session.interior import interior
from turnlog.thread.appender import appending
from turnlog.thread.space.garbage import tidy
from turnlog.thread.space.limit import keep_limit

SIZE = 50_000


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with turnlog.open(tmp_path / "home", durability="flush") as found:
        yield found


def tell(home: Home, session: Session, event: str, turn: str) -> None:
    """What a hook would."""
    store = interior(home).store
    with appending(store, store.open(session.id)) as appender:
        appender.writes_no_writer_entry = True
        relay = TurnRelay(store, appender, Coverage(store, appender.history, interior(home).settings))
        given = (turn, worker_of(this_process())) if event == "begin" else (turn,)
        getattr(relay, event)(*given)


def work(home: Home, place: Path, turns: int = 3, tools: int = 3, *, is_cut: bool = False) -> Session:
    place.mkdir(exist_ok=True)
    session = home.create(workspace=place)
    for number in range(turns):
        tell(home, session, "begin", f"t{number}")
        for _ in range(tools):
            (place / "noise").write_bytes(os.urandom(SIZE))
            tell(home, session, "record_tool", f"t{number}")
        if not is_cut:
            (place / "noise").write_bytes(os.urandom(SIZE))
            tell(home, session, "end", f"t{number}")
    session.refresh()
    return session


def left(home: Home, session: Session) -> list[str]:
    session.refresh()
    return [str(one.when) for one in session.checkpoints()]


def test_tools_of_the_oldest_turns_go_first_and_then_their_turns(home: Home, tmp_path: Path):
    session = work(home, tmp_path / "one")
    work(home, tmp_path / "one", turns=1, tools=0)
    whole = left(home, session)
    assert whole.count("tool") == 9
    keep_limit(interior(home).store, 8 * SIZE)
    some = left(home, session)
    assert 0 < some.count("tool") < 9
    assert some[:2] == ["begin", "end"]
    assert some[-2:] == ["tool", "end"]
    assert some.count("end") == some.count("begin") == 3


def test_the_last_tool_of_a_turn_that_was_cut_counts_as_its_end(home: Home, tmp_path: Path):
    session = work(home, tmp_path / "one", is_cut=True)
    work(home, tmp_path / "one", turns=1, tools=0)
    keep_limit(interior(home).store, 7 * SIZE)
    assert left(home, session).count("tool") >= 3
    assert home.gc(quota_bytes=0).dropped
    assert left(home, session) == []


def test_the_newest_session_of_each_folder_and_what_is_named_stay(home: Home, tmp_path: Path):
    old = work(home, tmp_path / "one")
    named = old.checkpoint("mine")
    newest = work(home, tmp_path / "one")
    other = work(home, tmp_path / "two")
    before = [left(home, one) for one in (newest, other)]
    assert keep_limit(interior(home).store, 10**9) is None
    done = keep_limit(interior(home).store, 1)
    assert done is not None
    assert done.dropped
    assert [left(home, one) for one in (newest, other)] == before
    old.refresh()
    assert [one.id for one in old.checkpoints()] == [named.id]


def test_where_there_was_no_room_something_goes_below_the_limit_already(tmp_path: Path):
    with turnlog.open(tmp_path / "home", durability="flush", quota_bytes=6 * SIZE) as home:
        old = work(home, tmp_path / "one", turns=1)
        session = home.create(workspace=tmp_path / "one")
        (tmp_path / "one/noise").write_bytes(os.urandom(3 * SIZE))
        store = interior(home).store
        with appending(store, store.open(session.id)) as appender:
            files = Coverage(store, appender.history, interior(home).settings)
            TurnRelay(store, appender, files).begin("t", worker_of(None))
        assert files.is_full
        assert left(home, session) == []
        assert keep_limit(store, 6 * SIZE) is None
        keep_limit(store, 6 * SIZE, is_full=True)
        assert left(home, old) == ["begin", "tool", "end"]


def test_small_packs_are_written_together_and_nothing_is_lost(home: Home, tmp_path: Path):
    place = tmp_path / "one"
    place.mkdir()
    for number in range(100):
        (place / f"{number}.txt").write_text(f"{number}\n" * 200)
    session = work(home, place, turns=6, tools=5)
    packs = tmp_path / "home/blobs"
    before = home.disk()["blobs"]
    assert len(list(packs.glob("*.pack"))) > 32
    assert tidy(interior(home).store)
    assert len(list(packs.glob("*.pack"))) < 8
    assert home.disk()["blobs"] < before
    assert not tidy(interior(home).store)
    assert len(left(home, session)) == 42
    now = (place / "noise").read_bytes()
    session.rewind(to=session.checkpoints()[0], force=True)
    assert not (place / "noise").exists()
    session.undo()
    assert (place / "noise").read_bytes() == now


def test_a_limit_is_the_usual_or_what_was_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = str(tmp_path / "not" / "yet")
    usual = space(folder)
    assert usual.free_bytes is not None
    assert usual.limit_bytes == min(10 * 10**9, usual.free_bytes // 10)
    assert space(None) == Space(10 * 10**9, None)
    set_limit(folder, "3 GB")
    assert space(folder).limit_bytes == 3 * 10**9
    monkeypatch.setenv("TURNLOG_LIMIT", "200MB")
    assert space(folder).limit_bytes == 200 * 10**6
    with pytest.raises(Invalid):
        size_of("a lot")


def test_too_little_room_is_told():
    assert Space(1, SPARE_BYTES - 1).is_short
    assert not Space(1, SPARE_BYTES).is_short
    assert not Space(1, None).is_short
