"""Behind a pooler in transaction mode: every transaction may be on another connection, and everything works."""

import asyncio
import logging
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

import turnlog
from tests.pgbouncer import PROGRAM, WHY_NOT, Bouncer
from tests.pgserver import Server
from tests.session.test_live import BEGIN, word
from turnlog import aio
from turnlog.session.interior import interior
from turnlog.wire import anthropic

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=WHY_NOT)


@pytest.fixture(scope="module")
def database(postgres: Server) -> str:
    database = postgres.database(f"pooled-{uuid.uuid4()}")
    turnlog.open(database).close()
    return database


@pytest.fixture(scope="module")
def role(postgres: Server, database: str) -> str:
    """One that row level security holds for: no owner, no superuser."""
    role = postgres.role()
    postgres.grant(database, role)
    return role


@pytest.fixture(scope="module")
def bouncer(postgres: Server, role: str) -> Iterator[Bouncer]:
    """With one connection to the server: whatever two clients do, they do on the same one."""
    made = Bouncer(postgres, role)
    yield made
    made.kill()


@pytest.fixture
def few(postgres: Server, role: str) -> Iterator[Bouncer]:
    made = Bouncer(postgres, role, size=3)
    yield made
    made.kill()


@pytest.fixture
def location(bouncer: Bouncer, database: str, role: str) -> str:
    return bouncer.before(database).replace("postgres@", f"{role}@")


def only_connection(location: str) -> psycopg.Connection:
    return psycopg.connect(location, autocommit=True, prepare_threshold=None)


def test_it_is_found_out_by_itself_and_said(location: str, database: str):
    with turnlog.open(location) as home, turnlog.open(database) as direct:
        assert (home.following, direct.following) == ("asking", "told")
        assert home.health()["following"] == "asking"
        assert home.health()["ok"]


def test_how_a_pooler_works_can_be_said(database: str):
    for mode, following in (("session", "told"), ("transaction", "asking")):
        with turnlog.open(f"{database}?pooler={mode}") as home:
            assert home.following == following
    with pytest.raises(turnlog.Invalid, match="pooler=maybe"):
        turnlog.open(f"{database}?pooler=maybe")


def test_concurrent_tenants_on_one_connection_see_their_own_and_nothing_else(location: str):
    """Four threads, six tenants, one connection to the server; the number in every text says whose it is."""
    with turnlog.open(location) as home:
        tenants = {number: home.tenant(f"t{number}-{uuid.uuid4()}") for number in range(6)}
        pids = set()

        def work(step: int) -> None:
            number = step % 6
            tenant = tenants[number]
            tenant.create(id=f"s{step}", title=f"of {number}").user(f"said by {number}")
            rows = tenant.sessions()
            assert {row.title for row in rows} == {f"of {number}"}
            texts = {tenant.read(row.id).messages()[0].blocks[0].text for row in rows[:3]}
            assert texts == {f"said by {number}"}
            assert not tenant.exists(f"s{step + 1}") or (step + 1) % 6 == number
            pids.update(interior(tenant).store._pool.rows("asking", "select pg_backend_pid()"))

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(work, range(24)))
        assert len(pids) == 1
        assert {len(tenant.sessions()) for tenant in tenants.values()} == {4}
    with only_connection(location) as raw:
        assert raw.execute("select turnlog.tenant_name(), current_setting('statement_timeout')").fetchall() == [
            ("", "0")
        ]
        assert raw.execute("select count(*) from turnlog.session").fetchall() == [(0,)]
        assert raw.execute("select count(*) from pg_prepared_statements").fetchall() == [(0,)]


def test_following_asks_and_says_so(location: str, caplog: pytest.LogCaptureFixture):
    seen: list[int] = []
    with turnlog.open(location) as one, turnlog.open(location) as two:
        tenant = one.tenant(f"t-{uuid.uuid4()}")
        session = tenant.create(id="s")
        followed = two.tenant(tenant.tenant_name or "").read("s")
        with caplog.at_level(logging.WARNING, logger="turnlog"):

            def follow() -> None:
                for entry in followed.follow(after=0):
                    seen.append(entry.seq)
                    if len(seen) == 6:
                        return

            thread = threading.Thread(target=follow)
            thread.start()
            while not interior(two).store._watch.listener._used:
                threading.Event().wait(0.01)
            for text in "abcd":
                session.note(text)
            thread.join()
    assert seen == [1, 2, 3, 4, 5, 6]
    assert [record.getMessage().split(":")[0] for record in caplog.records] == ["following polls every 0.2 s"]


@pytest.mark.parametrize("is_writer_pooled", [True, False])
def test_deltas_are_not_heard_through_it_and_entries_are(
    location: str, database: str, caplog: pytest.LogCaptureFixture, is_writer_pooled: bool
):
    """Whoever follows behind it has the entry, and was told that he asks. Who is not behind it hears both writers."""
    name, heard = f"t-{uuid.uuid4()}", []
    with turnlog.open(location) as pooled, turnlog.open(database) as direct:
        writer = (pooled if is_writer_pooled else direct).tenant(name).create(id="s")
        writer.note("begun")
        behind, beside = (home.tenant(name).read("s").follow(deltas=True) for home in (pooled, direct))
        with caplog.at_level(logging.WARNING, logger="turnlog"):
            thread = threading.Thread(target=lambda: heard.append(next(behind)))
            thread.start()
            while not interior(pooled).store._watch.listener._used:
                threading.Event().wait(0.01)
            with writer.live(anthropic.Stream()) as live:
                for event in (*BEGIN, word("on its way")):
                    live.feed(event)
                assert next(beside).text == "on its way"
                answer = writer.append(live.finish())
            thread.join()
            behind.close()
            beside.close()
    assert heard == [answer]
    assert [record.getMessage().split(":")[0] for record in caplog.records] == ["following polls every 0.2 s"]


def test_tenants_that_search_and_bill_at_once_get_their_own(database: str, role: str, few: Bouncer):
    async def one(home: aio.Home, number: int) -> None:
        tenant = await home.tenant(f"t{number}")
        session = await tenant.create(id="s", title=f"of {number}", labels={"customer": f"c{number}"})
        await session.user(f"the heliotrope of {number}")
        await session.assistant("yes", model="some-model", usage=turnlog.Usage(input_tokens=10 + number))
        hits, spent = await asyncio.gather(tenant.search("heliotrope"), tenant.usage(by="label:customer"))
        assert [hit.card.title for hit in hits] == [f"of {number}"]
        assert [(row.group, row.tokens.input_tokens) for row in spent[:-1]] == [(f"c{number}", 10 + number)]
        assert spent[-1].tokens.input_tokens == 10 + number

    async def run() -> None:
        async with aio.open(few.before(database).replace("postgres@", f"{role}@")) as home:
            await asyncio.gather(*(one(home, number) for number in range(6)))

    asyncio.run(run())


def test_search_and_usage_know_one_tenant(location: str):
    with turnlog.open(location) as home:
        acme, other = home.tenant(f"acme-{uuid.uuid4()}"), home.tenant(f"other-{uuid.uuid4()}")
        acme.create(id="s").user("the heliotrope fell from the wall")
        other.create(id="s").user("nothing of the kind")
        for tenant, found in ((acme, 1), (other, 0), (home, 0)):
            with turnlog.Catalog(tenant) as catalog:
                assert len(catalog.search("heliotrope")) == found
                assert catalog.path == ":memory:"
        assert home.drop_tenant(acme.tenant_name or "").sessions == 1
        with turnlog.Catalog(other) as catalog:
            assert [card.id for card in catalog.cards()] == ["s"]


def test_blobs_forks_moving_erasing_and_collecting(database: str, role: str, few: Bouncer):
    """What is moved is read on one connection and written on another."""
    with turnlog.open(few.before(database).replace("postgres@", f"{role}@")) as home:
        acme, other = home.tenant(f"a-{uuid.uuid4()}"), home.tenant(f"b-{uuid.uuid4()}")
        session = acme.create(id="s")
        session.user("hello " * 20_000)
        fork = session.fork()
        fork.note("on the fork")
        acme.push(other)
        assert {row.id for row in other.sessions()} == {"s", fork.id}
        assert other.read("s").messages()[0].blocks[0].text == "hello " * 20_000
        session.erase(session.messages()[0])
        acme.purge("s")
        acme.gc()
        assert len(other.sessions()) == 2
        assert acme.disk()["logs"] > 0
