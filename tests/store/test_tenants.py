"""Tenants on every store: the same calls, each a home of its own, dropped with all that they have."""

import asyncio
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import turnlog
from tests.pgserver import Server
from tests.session.test_live import BEGIN, feed, text_until, word
from turnlog import aio
from turnlog.errors import Conflict, Invalid, NotFound, Unsupported
from turnlog.session.interior import interior
from turnlog.store import derived
from turnlog.wire import anthropic

STORES = ("files", "memory", "postgres", "role")
SECRET = b"a secret of acme" * 4096


@pytest.fixture(params=STORES)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty home; on PostgreSQL as a superuser, and as a role that row level security holds for."""
    if request.param == "memory":
        return "memory:"
    if request.param == "files":
        return str(tmp_path / "home")
    server: Server = request.getfixturevalue("postgres")
    database = server.database(f"tenants-{uuid.uuid4()}")
    if request.param == "postgres":
        return database
    turnlog.open(database).close()
    role = server.role()
    server.grant(database, role)
    return database.replace("postgres@", f"{role}@")


@pytest.fixture
def home(location: str) -> Iterator[turnlog.Home]:
    with turnlog.open(location) as home:
        yield home


def titles(home: turnlog.Home) -> set[str | None]:
    return {row.title for row in home.sessions()}


def test_each_has_a_home_of_its_own(home: turnlog.Home):
    acme, other = home.tenant("acme"), home.tenant("öther/../x")
    home.create(id="s", title="the operator's").user("hello")
    acme.create(id="s", title="of acme").user("hello from acme")
    blob = acme.put_blob(SECRET)
    assert (titles(home), titles(acme), titles(other)) == ({"the operator's"}, {"of acme"}, set())
    for stranger in (home, other):
        with pytest.raises(NotFound):
            stranger.get_blob(blob)
    with pytest.raises(NotFound):
        other.resume("s")
    assert home.tenant("acme").resume("s").messages()[0].blocks[0].text == "hello from acme"
    assert home.tenants() == ["acme", "öther/../x"]
    assert (home.tenant_name, acme.tenant_name) == (None, "acme")


def test_one_that_is_not_there_is_made_only_if_it_may_be(home: turnlog.Home):
    with pytest.raises(NotFound, match="no tenant 'acme'"):
        home.tenant("acme", create=False)
    assert home.tenants() == []
    home.tenant("acme")
    assert home.tenant("acme", create=False).sessions() == []
    for name in ("", None, "\ud800", "a\0b"):
        with pytest.raises(Invalid):
            home.tenant(name)  # pyright: ignore[reportArgumentType]
    assert home.tenants() == ["acme"]


def test_a_tenant_reaches_no_other(home: turnlog.Home):
    acme = home.tenant("acme")
    home.tenant("other")
    for ask in (lambda: acme.tenant("other"), acme.tenants, lambda: acme.drop_tenant("other")):
        with pytest.raises(Unsupported, match="'acme'"):
            ask()
    assert home.tenants() == ["acme", "other"]


def test_dropping_says_what_went_and_takes_nothing_else(home: turnlog.Home):
    acme, other = home.tenant("acme"), home.tenant("other")
    for tenant in (acme, other):
        one, two = tenant.create(id="one"), tenant.create(id="two")
        one.user("hello")
        one.fork(id="fork").user("more")
        two.user("bye")
        two.close()
        tenant.delete("two")
        tenant.put_blob(SECRET)
    entries = sum(len(list(log.lines())) for log in derived.all_logs(interior(acme).store))
    size = sum(acme.disk().values())
    went = home.drop_tenant("acme")
    assert went == turnlog.DroppedTenant("acme", sessions=2, deleted=1, entries=entries, blobs=1, size_bytes=size)
    assert home.tenants() == ["other"]
    assert other.get_blob(other.put_blob(SECRET)) == SECRET
    assert {row.id for row in other.sessions()} == {"one", "fork"}
    with pytest.raises(NotFound):
        home.drop_tenant("acme")
    assert home.tenant("acme").sessions() == []


def test_a_log_that_cannot_be_read_keeps_no_tenant(tmp_path: Path):
    home = turnlog.open(tmp_path / "home")
    acme = home.tenant("acme")
    acme.create(id="one").user("hello")
    acme.close()
    [log] = (tmp_path / "home").rglob("one.jsonl")
    log.unlink()
    log.mkdir()
    assert home.drop_tenant("acme").sessions == 1
    assert not list((tmp_path / "home" / "tenants").iterdir())


def test_two_drops_at_once_leave_nothing_and_one_says_what_went(tmp_path: Path):
    home = turnlog.open(tmp_path / "home")
    for _ in range(5):
        for name in ("one", "two"):
            for number in range(10):
                home.tenant(name).create(id=f"{number}").user("hello")
        told: list[object] = []

        def drop(name: str, told: list[object] = told) -> None:
            try:
                told.append(home.drop_tenant(name))
            except Exception as error:
                told.append(error)

        threads = [threading.Thread(target=drop, args=(name,)) for name in ("one", "two", "one", "two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(isinstance(one, turnlog.DroppedTenant) for one in told) == 2
        assert sum(isinstance(one, NotFound) for one in told) == 2
        assert not list((tmp_path / "home" / "tenants").iterdir())


def test_who_has_a_dropped_tenant_open_is_told_and_nothing_comes_back(home: turnlog.Home):
    acme = home.tenant("acme")
    session, unused = acme.create(id="s"), home.tenant("acme")
    session.user("hello")
    home.drop_tenant("acme")
    for write in (lambda: session.user("lost?"), lambda: acme.create(id="t"), lambda: unused.create(id="u")):
        with pytest.raises(NotFound):
            write()
    for tenant in (acme, unused):
        with pytest.raises(turnlog.TurnlogError):
            tenant.put_blob(SECRET)
        assert tenant.sessions() == []
    again = home.tenant("acme")
    assert again.sessions() == []
    again.create(id="s", title="anew").user("hello again")
    with pytest.raises((NotFound, Conflict)):
        session.user("into the new one?")
    assert len(again.resume("s").messages()) == 1


def test_closing_a_tenants_home_leaves_the_others_open(home: turnlog.Home):
    acme, other = home.tenant("acme"), home.tenant("other")
    acme.create(id="s")
    acme.close()
    with pytest.raises(Invalid):
        acme.sessions()
    other.create(id="s").user("hello")
    home.close()
    with pytest.raises(Invalid):
        other.sessions()


def test_with_await(location: str):
    async def run() -> None:
        async with aio.open(location) as home:
            acme = await home.tenant("acme")
            session = await acme.create(title="of acme")
            await session.user("hello")
            assert [row.title for row in await acme.sessions()] == ["of acme"]
            assert await home.sessions() == []
            assert (await home.tenants(), acme.tenant_name) == (["acme"], "acme")
            await acme.close()
            with pytest.raises(Invalid):
                await acme.sessions()
            assert (await home.drop_tenant("acme")).sessions == 1
            other = await home.tenant("other")
        with pytest.raises(Invalid):
            await other.sessions()

    asyncio.run(run())


def test_a_catalog_of_one_tenant_shows_neither_others_nor_the_operators_own(
    location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    if location == "memory:":
        pytest.skip("what is in memory alone is in no catalog")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with turnlog.open(location) as home:
        acme, other = home.tenant("acme"), home.tenant("other")
        for owner, one in (("operator", home), ("acme", acme), ("other", other)):
            one.create(id=f"s-{owner}", title=owner).user(f"the heliotrope of {owner}")
        for owner, one in (("acme", acme), ("other", other)):
            with turnlog.Catalog(one) as catalog:
                assert [card.title for card in catalog.cards(everything=True)] == [owner]
                assert [hit.card.title for hit in catalog.search("heliotrope")] == [owner]
        with turnlog.Catalog(home, agents=False) as catalog:
            assert [card.title for card in catalog.cards(everything=True)] == ["operator"]


def test_what_is_being_said_is_heard_by_its_own_tenant_only(home: turnlog.Home):
    """Both sessions have one id, and both speak at once."""
    speakers, heard = {}, {}
    for name in ("acme", "other"):
        tenant = home.tenant(name)
        speakers[name] = tenant.create(id="s")
        speakers[name].note("begun")
        heard[name] = tenant.read("s").follow(deltas=True)
    with ExitStack() as all_of_them:
        for name, session in speakers.items():
            live = all_of_them.enter_context(session.live(anthropic.Stream()))
            for event in (*BEGIN, word(f"of {name}")):
                live.feed(event)
        for name, source in heard.items():
            assert text_until(source, f"of {name}")
    for name, source in heard.items():
        assert next(source).is_over
        note = speakers[name].note(f"to {name}")
        assert next(source) == note
        source.close()


def test_who_waits_is_listed_for_its_own_tenant_only(location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if location == "memory:":
        pytest.skip("what is in memory alone is in no catalog")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with turnlog.open(location) as home:
        acme, other = home.tenant("acme"), home.tenant("other")
        for tenant in (acme, other):
            tenant.create(id="s").assistant([turnlog.ToolCall(id="rm", name="bash", input={})])
        session = acme.resume("s")
        ask = session.ask("rm")
        with turnlog.Catalog(acme) as mine, turnlog.Catalog(other) as theirs:
            waiting = [card.id for card in mine.cards("is:waiting")]
            assert (waiting, mine.cards()[0].state) == (["s"], "waiting")
            assert theirs.cards("is:waiting") == []
            session.answer(ask, allow=True, by="ada")
            mine.refresh(at_once=True)
            assert mine.cards("is:waiting") == []


def test_live_text_of_other_tenants_goes_on_when_one_is_dropped(home: turnlog.Home):
    gone, there = home.tenant("acme").create(id="s"), home.tenant("other").create(id="s")
    source = home.tenant("other").read("s").follow(deltas=True)
    listener = home.tenant("acme").read("s").follow(deltas=True)
    with gone.live(anthropic.Stream()) as live, there.live(anthropic.Stream()) as other:
        feed(live, *BEGIN, word("soon gone"))
        text_until(listener, "soon gone")
        feed(other, *BEGIN, word("before"))
        text_until(source, "before")
        home.drop_tenant("acme")
        feed(live, word(" into nowhere"))
        time.sleep(0.3)
        feed(other, word(" and after"))
        assert next(source).text == " and after"
    source.close()
    listener.close()


@pytest.mark.parametrize("name", ["x" * 10_000, "\udcff"])
def test_an_error_about_a_tenant_speaks_of_no_session(tmp_path: Path, name: str):
    with turnlog.open(tmp_path / "home") as home, pytest.raises(Invalid, match="no tenant can be called"):
        home.drop_tenant(name)
