"""Use after the end: a session or a home that is closed, a session that was purged; and a clock that tells no time."""

import asyncio
import os
import threading

import pytest

import turnlog
from turnlog import Invalid, NotFound, Set, ToolResult, Unavailable, Unsupported, aio
from turnlog.catalog import Catalog
from turnlog.exchange.importing.counterpart import open_session
from turnlog.log.entry import FORMAT, Start
from turnlog.session.interior import interior
from turnlog.testing import draft
from turnlog.thread.reader import history_of

ASKING = {
    "user": lambda s: s.user("more"),
    "set": lambda s: s.set("k", 2),
    "set title": lambda s: s.set("title", "more"),
    "messages": lambda s: s.messages(),
    "context": lambda s: s.context(),
    "entries": lambda s: list(s.entries()),
    "follow": lambda s: next(iter(s.follow())),
    "find": lambda s: s.find("e"),
    "refresh": lambda s: s.refresh(),
    "usage": lambda s: s.usage(),
    "checkpoint": lambda s: s.checkpoint(),
    "rewind": lambda s: s.rewind(turns=1),
    "fork": lambda s: s.fork(),
    "spawn": lambda s: s.spawn(),
    "blob": lambda s: s.blob("sha256:" + "0" * 64),
    "turn": lambda s: s.turn().__enter__(),
    "damage": lambda s: s.damage,
}


@pytest.mark.parametrize("whose", ["session", "home"])
def test_what_is_closed_says_so_and_keeps_what_it_knows(home, s, whose, tmp_path):
    s.set("workspace", str(tmp_path))
    s.set("k", 1)
    s.user("hello")
    (s if whose == "session" else home).close()
    for name, ask in ASKING.items():
        with pytest.raises(Invalid, match="is closed") as error:
            ask(s)
        assert error.value.hint, name
    assert (s.get("k"), s.facts["k"], s.title, s.agent, s.labels) == (1, 1, None, None, {})
    assert s.id and s.handle and s.seq and s.head
    s.close()
    home.close()


def test_a_closed_session_can_be_opened_again(home, s):
    s.user("hello")
    s.close()
    again = home.resume(s.id)
    again.user("more")
    assert len(again.messages()) == 2


def test_one_that_is_only_read_says_so_as_well(home, s):
    s.user("hello")
    reading = home.read(s.id)
    home.close()
    for ask in (lambda: reading.messages(), lambda: reading.diff(), lambda: reading.export("pi")):
        with pytest.raises(Invalid, match="is closed"):
            ask()


def test_a_closed_home_says_so(home, s):
    home.close()
    asked = (
        lambda: home.create(), lambda: home.resume(s.id), lambda: home.read(s.id), lambda: home.sessions(),
        lambda: home.find("latest"), lambda: home.exists(s.id), lambda: home.delete(s.id), lambda: home.purge(s.id),
        lambda: home.put_blob(b"x"), lambda: home.gc(), lambda: home.disk(), lambda: home.health(),
    )  # fmt: skip
    for ask in asked:
        with pytest.raises(Invalid, match="this home is closed"):
            ask()


def test_a_closed_catalog_says_so_in_both_faces(tmp_path):
    catalog = Catalog(tmp_path / "home", agents=False)
    assert catalog.cards() == []
    catalog.close()
    for question in (catalog.cards, catalog.sync, catalog.rebuild, catalog.forget_purged):
        with pytest.raises(Invalid, match="this catalog is closed"):
            question()

    async def ask():
        catalog = aio.Catalog(tmp_path / "home", agents=False)
        await catalog.close()
        await catalog.cards()

    with pytest.raises(Invalid, match="this catalog is closed"):
        asyncio.run(ask())


@pytest.mark.parametrize("forks", [0, 1])
def test_following_a_session_that_is_purged_ends_with_an_error(home, s, forks):
    s.user("hello")
    for _ in range(forks):
        s.fork()
    followed = s.follow(after=0)
    next(followed)
    threading.Timer(0.1, home.purge, [s.id]).start()
    with pytest.raises(NotFound, match=f"{s.id} (was purged|is gone)"):
        list(followed)
    with pytest.raises(NotFound, match=r"was purged|is gone"):
        list(s.follow())


def test_one_in_the_trash_can_be_followed(home, s):
    home.delete(s.id)
    assert next(home.read(s.id).follow(after=0)).seq == 1


@pytest.mark.parametrize("name", ["labels", "agent", "hidden", "resume", "fork", "spawned", "id", "session", "format"])
def test_what_the_first_line_says_is_no_fact(s, name):
    with pytest.raises(Invalid, match=f"'{name}' is no fact") as error:
        s.set(name, "x")
    assert "home.create" in error.value.hint
    with pytest.raises(Invalid, match="is no fact"):
        s.append(Set(key=name, value="x"))
    s.unset(name)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1.5])
def test_a_number_that_is_not_whole_is_refused(s, value):
    seq = s.seq
    with pytest.raises(Invalid, match=f"duration_ms is {value}"):
        s.append(turnlog.Message(role="tool", blocks=[ToolResult(call="c", content="x", duration_ms=value)]))
    with pytest.raises(Invalid, match=r"data\.a is nan"):
        s.note("x", data={"a": float("nan")})
    assert s.seq == seq


@pytest.mark.parametrize("time", [None, "noon", 1.5, float("nan"), 10**18, -(10**18), True])
def test_a_clock_that_tells_no_time_is_refused(place, time):
    s = place.open().create(id="mine")
    wrong = place.open(clock=lambda: time)
    with pytest.raises(Invalid, match="the time") as error:
        wrong.create()
    assert "milliseconds" in error.value.hint
    if place.face == "memory":  # the store that is shared has the clock of who made it
        wrong = turnlog.open("memory:", clock=lambda: time)
    with pytest.raises(Invalid, match="the time"):
        wrong.create(id="other")
    assert not wrong.exists("other")
    if place.face != "memory":
        with pytest.raises(Invalid, match="the time"):
            wrong.resume("mine").user("hello")
    s.user("still works")


class Reluctant:
    """A log that cannot be closed."""

    def __init__(self, log):
        self._log = log

    def __getattr__(self, name):
        return getattr(self._log, name)

    def close(self):
        raise Unavailable("the disk is gone")


def test_whatever_cannot_be_closed_the_rest_is(tmp_path):
    home = turnlog.open(tmp_path)
    tenants = [home.tenant(name) for name in ("a", "b")]
    sessions = [h.create() for h in (home, home, *tenants)]
    for session in (sessions[0], sessions[2]):
        history = history_of(session)
        history._opened = (history.store, Reluctant(history.log))
    with pytest.raises(Unavailable, match="the disk is gone"):
        home.close()
    assert all(session.is_closed for session in sessions)
    for closed in (home, *tenants):
        with pytest.raises(Invalid, match="this home is closed"):
            closed.sessions()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="asks Linux which descriptors are open")
def test_a_session_that_cannot_be_opened_leaves_no_file_open(tmp_path):
    with turnlog.open(tmp_path / "home") as home:
        interior(home).store.create("newer", [draft(Start(session="newer", format=FORMAT + 1))]).close()
        before = len(os.listdir("/proc/self/fd"))
        for use in (home.resume, home.read, lambda name: open_session(interior(home).store, name)):
            with pytest.raises(Unsupported) as caught:
                use("newer")
            assert len(os.listdir("/proc/self/fd")) == before, caught  # while the traceback holds its frames
