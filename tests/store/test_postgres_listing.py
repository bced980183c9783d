"""The newest sessions of many: exactly those, by an index, and appends pay nothing for it."""

import random
import uuid
from collections.abc import Iterator
from itertools import islice

import psycopg
import pytest

import turnlog
from tests.pgserver import Server
from turnlog.log.entry import Note
from turnlog.store import derived
from turnlog.store import postgres as store_postgres
from turnlog.store.postgres import PostgresStore, listing
from turnlog.testing import ManualClock, draft
from turnlog.testing.build import start

MINUTE = 60_000


def note() -> turnlog.store.Draft:
    return draft(Note(text="x"))


@pytest.fixture
def database(postgres: Server) -> str:
    """A database of this test's own."""
    return postgres.database(f"d{uuid.uuid4().hex}")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(database: str, clock: ManualClock) -> Iterator[PostgresStore]:
    store = store_postgres.connect(database, clock=clock, durability="flush")
    yield store
    store.close()


@pytest.mark.parametrize("seed", range(4))
def test_the_newest_are_exactly_those_whatever_grew_when(
    store: PostgresStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, seed: int
):
    """Around the turn of minutes, in pages that end anywhere."""
    rng = random.Random(seed)
    monkeypatch.setattr(listing, "_FIRST_PAGE", rng.randint(1, 9))
    monkeypatch.setattr(listing, "_PAGE", rng.randint(1, 9))
    logs = []
    for number in range(40):
        clock.tick(rng.choice([0, 1, MINUTE // 3]))
        logs.append(store.create(f"s{number}", [start(f"s{number}")]))
    for _ in range(8):
        for log in rng.sample(logs, 12):
            clock.tick(rng.choice([0, 0, 1, 500, MINUTE - 1, MINUTE, 3 * MINUTE, -20_000]))
            log.append([note()], after=0, head=0)
        expected = sorted(store.listing(), key=lambda found: found.order, reverse=True)
        assert list(derived.newest(store)) == expected
        behind = rng.randrange(40)
        assert list(islice(derived.newest(store, after=expected[behind].order), 7)) == expected[behind + 1 : behind + 8]


def plan(location: str, query: str, values: tuple) -> str:
    with psycopg.connect(location) as connection:
        connection.execute("set local plan_cache_mode = force_generic_plan")
        connection.execute("select set_config('turnlog.tenant', '', false)")
        return "\n".join(row[0] for row in connection.execute("explain " + query, values).fetchall())


@pytest.mark.parametrize("who", ["owner", "application"])
def test_listings_and_names_are_looked_up_by_index(postgres: Server, store: PostgresStore, database: str, who: str):
    """Row level security must not be in the way of that."""
    location = database
    if who == "application":
        role = postgres.role()
        postgres.grant(database, role)
        location = database.replace("postgres@", f"{role}@")
    with psycopg.connect(database, autocommit=True) as admin:
        admin.execute(
            "insert into turnlog.session (num, tenant, key, id, place, root, made, first_seq, last_seq, last_ms, "
            "recent, last_fence, bytes) "
            "select n, %s, convert_to('k' || n, 'UTF8'), convert_to('k' || n, 'UTF8'), 'live', n, gen_random_uuid(), "
            "1, 1, n * 10000, n / 6, 0, 0 from generate_series(1000000::bigint, 1020000) as n",
            (store._tenant,),
        )
        admin.execute("analyze turnlog.session")
    end = (1 << 63) - 1
    found = plan(location, listing._NEWEST, (store._tenant, "live", end, end, end, b"", 50))
    assert "session_recent" in found
    assert "Seq Scan on session" not in found
    found = plan(location, listing._IDS_BY_KEY, (store._tenant, "live", b"k10", b"k10\xff", 50))
    assert "Index Cond: ((tenant = " in found
    assert "key >= " in found.partition("Index Cond")[2].splitlines()[0]
    found = plan(location, listing._IDS_BY_ALIAS, (store._tenant, "live", b"k10", b"k10\xff"))
    assert "session_alias" in found


def updates(store: PostgresStore, admin: psycopg.Connection) -> tuple[int, int]:
    """How many updates of sessions there were, and how many of them touched no index."""
    if admin.info.server_version < 150000:
        pytest.skip("this server counts updates later than we look")
    store._pool.rows("counting", "select pg_stat_force_next_flush()")
    store._pool.rows("counting", "select 1")
    query = "select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = 'session'"
    return admin.execute(query).fetchall()[0]


def test_an_append_touches_an_index_of_its_session_once_a_minute_at_most(database: str, clock: ManualClock):
    clock.now -= clock.now % MINUTE
    store = store_postgres.connect(database, clock=clock, connections=1)
    with psycopg.connect(database, autocommit=True) as admin:
        log = store.create("s", [start("s")])
        for number in range(240):
            if number and not number % 60:
                clock.tick(MINUTE)
            log.append([note()], after=0, head=0)
        count, hot = updates(store, admin)
        assert (count, hot) == (240, 237)
    store.close()


def test_an_application_appends_by_the_number_of_a_session_in_a_table_nobody_has_analyzed(
    postgres: Server, store: PostgresStore, database: str
):
    """While a table is new all its indexes look alike, and a plan that is kept has to be the right one later, too."""
    role = postgres.role()
    postgres.grant(database, role)
    found = plan(
        database.replace("postgres@", f"{role}@"),
        "update turnlog.session set last_seq = 2 where tenant = %s and num = %s and place = 'live' and last_seq = %s",
        (1, 1, 1),
    )
    assert "Index Scan using session_pkey" in found
