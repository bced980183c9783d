"""Tables of every earlier version, with sessions in them, are brought up to date, and who is older is refused."""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

import turnlog
from tests.pgserver import Server
from turnlog.errors import Unavailable, Unsupported
from turnlog.log.entry import Note
from turnlog.log.part import Fork
from turnlog.log.payload import digest, digest_key
from turnlog.session.interior import interior
from turnlog.store import derived
from turnlog.store import postgres as store_postgres
from turnlog.store.postgres import schema
from turnlog.store.postgres.names import key_of
from turnlog.store.postgres.rows import stamp
from turnlog.testing import ManualClock, draft, message_draft
from turnlog.testing.build import START_MS, start

LONG = "long" * 200
HANDLE = "20261115-070012-k3f9q2m7"


@pytest.fixture
def database(postgres: Server) -> str:
    return postgres.database(f"d{uuid.uuid4().hex}")


@pytest.fixture
def admin(database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


class First:
    """A database as the first version left it, filled with the statements of that version."""

    def __init__(self, admin: psycopg.Connection) -> None:
        self.admin = admin
        admin.execute("create schema turnlog")
        admin.execute(
            "create table turnlog.migration (number int primary key, applied timestamptz not null default now())"
        )
        admin.execute(schema.migrations()[1].encode())
        admin.execute("insert into turnlog.migration (number) values (1)")

    def tenant(self, name: str) -> int:
        query = "insert into turnlog.tenant (name) values (%s) returning num"
        return self.admin.execute(query, (name,)).fetchall()[0][0]

    def session(self, tenant: int, name: str, texts: list[str], *, at: int, state="live", fork: Fork | None = None):
        drafts = [start(name, fork=fork, title=f"Title of {name[:20]}"), *map(message_draft, texts)]
        new = stamp(drafts, floor=fork.seq if fork else 0, at=0, now=at, head=0)
        values = {
            "tenant": tenant, "key": key_of(name), "id": name.encode(), "state": state, "made": uuid.uuid4(),
            "fork_of": key_of(fork.session) if fork else None, "fork_seq": fork.seq if fork else None,
            "first": new.seqs[0], "last": new.seqs[-1], "at": new.last_at, "fence": new.last_fence, "bytes": new.size,
        }  # fmt: skip
        [(num, root)] = self.admin.execute(
            "insert into turnlog.session (num, tenant, key, id, state, root, made, fork_of, fork_seq, first_seq, "
            "last_seq, last_at, last_fence, bytes) select new.num, %(tenant)s, %(key)s, %(id)s, %(state)s, "
            "coalesce((select root from turnlog.session where tenant = %(tenant)s and key = %(fork_of)s), new.num), "
            "%(made)s, %(fork_of)s, %(fork_seq)s, %(first)s, %(last)s, %(at)s, %(fence)s, %(bytes)s "
            "from (select nextval('turnlog.number') as num) as new returning num, root",
            values,
        ).fetchall()
        for seq, key, line in zip(new.seqs, new.keys, new.lines, strict=True):
            self.admin.execute(
                "insert into turnlog.entry (root, session, tenant, seq, key, line) values (%s, %s, %s, %s, %s, %s)",
                (root, num, tenant, seq, key, line),
            )
        return new.entries

    def blob(self, tenant: int, data: bytes) -> None:
        query = (
            "with new as (select nextval('turnlog.number') as num), named as ("
            "insert into turnlog.blob (tenant, digest, num, size, stored) select %s, %s, num, %s, %s from new) "
            "insert into turnlog.piece (blob, part, tenant, data) select num, 0, %s, %s from new"
        )
        raw = b"\0" + data
        self.admin.execute(query, (tenant, digest_key(digest(data)), len(data), len(raw), tenant, raw))


@pytest.fixture
def first(admin: psycopg.Connection) -> First:
    """Two tenants' sessions: old and new, forked, deleted, with a handle, with a long id."""
    first = First(admin)
    for tenant in (first.tenant(""), first.tenant("acme")):
        entries = first.session(tenant, "oldest", ["one", "two", "three"], at=START_MS)
        first.session(tenant, LONG, ["a"], at=START_MS + 50_000)
        first.session(tenant, HANDLE, ["b"], at=START_MS + 10_000)
        first.session(tenant, "gone", ["c"], at=START_MS + 70_000, state="deleted")
        first.session(tenant, "fork", ["four"], at=START_MS + 3_600_000, fork=Fork("oldest", 3, entries[2].id))
        first.blob(tenant, b"kept")
    return first


@pytest.mark.parametrize("tenant", ["", "acme"])
def test_everything_is_there_afterwards(first: First, database: str, tenant: str):
    clock = ManualClock(START_MS + 7_200_000)
    with turnlog.open(f"{database}?tenant={tenant}", clock=clock) as home:
        assert [row.id for row in home.sessions(limit=10)] == ["fork", LONG, HANDLE, "oldest"]
        assert [row.id for row in home.sessions()] == ["fork", LONG, HANDLE, "oldest"]
        assert [row.title for row in home.sessions(limit=1)] == ["Title of fork"]
        for name, found in (("k3f9", HANDLE), ("longlong", LONG), ("old", "oldest"), ("latest", "fork")):
            assert home.find(name) == found
        assert [message.blocks[0].text for message in home.resume("fork").path()[::-1]][-1] == "four"
        assert home.get_blob(digest(b"kept")) == b"kept"
        session = home.resume("oldest")
        session.user("more")
        assert [message.blocks[0].text for message in session.messages()][-1] == "more"
        assert home.find("latest") == "oldest"
        home.restore("gone")
        assert home.resume("gone").messages()[0].blocks[0].text == "c"
        home.purge("oldest")
        assert home.resume("fork").messages()[-1].blocks[0].text == "four"


def test_ids_that_were_purged_or_deleted_before_can_be_used_again(first: First, database: str):
    """What was kept aside then is found by the id of its first entry, which is that of the session."""
    tenant = first.tenant("purging")
    entries = first.session(tenant, "purged", ["one", "two"], at=START_MS, state="base")
    first.session(tenant, "fork", ["three"], at=START_MS + 1000, fork=Fork("purged", 3, entries[2].id))
    first.session(tenant, "gone", ["deleted"], at=START_MS, state="deleted")

    def said_in(home: turnlog.Home, name: str) -> list[str]:
        return [entry.blocks[0].text for entry in home.resume(name).entries(kind="message")]

    with turnlog.open(f"{database}?tenant=purging", clock=ManualClock(START_MS + 7_200_000)) as home:
        for name in ("purged", "gone"):
            with home.create(id=name) as session:
                session.user("anew")
                session.fork(id=f"fork of {name}").user("on")
        assert said_in(home, "fork") == ["one", "two", "three"]
        with pytest.raises(turnlog.AlreadyExists):
            home.restore("gone")
        home.restore("gone", as_="back")
        home.purge("purged")
        home.create(id="purged").close()
        assert said_in(home, "fork") == ["one", "two", "three"]
        assert said_in(home, "fork of purged") == said_in(home, "fork of gone") == ["anew", "on"]
        assert said_in(home, "back") == ["deleted"]
        for name in list(derived.ids(interior(home).store)):
            home.purge(name)
        assert home.disk()["logs"] == 0


def test_a_process_that_runs_on_from_before_is_refused_and_writes_nothing(first: First, database: str, admin):
    """Its statement, as it had prepared it: what it knows nothing of must not fall behind."""
    old = psycopg.connect(database, autocommit=True, prepare_threshold=0)
    query = "update turnlog.session set last_seq = last_seq + 1, last_at = %s where id = 'oldest'"
    old.execute(query, (START_MS + 1,))
    turnlog.open(database).close()
    with pytest.raises(psycopg.errors.UndefinedColumn):
        old.execute(query, (START_MS + 2,))
    old.close()


def test_who_comes_while_tables_are_made_waits_and_finds_them_made(database: str, admin: psycopg.Connection):
    admin.execute(schema._FIRST)
    with ThreadPoolExecutor(1) as threads:
        with admin.transaction():
            admin.execute(schema._LOCK)
            late = threads.submit(turnlog.open, database)
            waiting = "select from pg_stat_activity where wait_event_type = 'Lock' and query = %s and datname = %s"
            name = database.rpartition("/")[2]
            while not late.done() and not admin.execute(waiting, (schema._LOCK, name)).fetchall():
                admin.execute("select pg_sleep(0.01), pg_stat_clear_snapshot()")
            for number, text in schema.migrations().items():
                admin.execute(text.encode())
                admin.execute("insert into turnlog.migration (number) values (%s)", (number,))
        late.result(30).close()
    assert admin.execute("select count(*) from turnlog.migration").fetchall() == [(len(schema.migrations()),)]


OF_BEFORE = (
    "update turnlog.session set last_seq = 9, last_ms = 9, recent = 1 where num = 1 and state = 'live'",
    "insert into turnlog.session (num, tenant, key, id, state, root, made, first_seq, last_seq, last_ms, recent, "
    "last_fence, bytes) values (99, 1, 'k', 'k', 'live', 99, gen_random_uuid(), 1, 1, 1, 1, 0, 0)",
    "update turnlog.session set state = 'deleted' where tenant = 1 and key = 'k' and state = 'live'",
    "select num, root, state, fork_of from turnlog.session where tenant = 1 and key = 'k' for update",
    "insert into turnlog.piece (blob, part, tenant, data) values (99, 0, 1, '')",
    "update turnlog.tenant set collected = collected + 1 where num = 1",
    "insert into turnlog.derived (tenant, name, data) values (1, 'index', '')",
)
"""The first statement of whatever the version before this one writes."""


def test_the_version_before_is_refused_before_it_writes(first: First, database: str, admin: psycopg.Connection):
    turnlog.open(database).close()
    for statement in OF_BEFORE:
        with pytest.raises(psycopg.errors.UndefinedColumn):
            admin.execute(statement.encode())


def test_a_migration_does_not_wait_long_for_somebody_at_work(
    first: First, database: str, admin: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
):
    """Behind it, everybody else would have to wait as well."""
    monkeypatch.setattr(schema, "_IN_USE_S", 0.2)
    with admin.transaction():
        admin.execute("select count(*) from turnlog.session")
        with pytest.raises(Unavailable, match="lock timeout"):
            turnlog.open(database)
    turnlog.open(database).close()


def test_an_older_turnlog_is_refused_when_it_comes(first: First, database: str, monkeypatch: pytest.MonkeyPatch):
    newest = max(schema.migrations())
    turnlog.open(database).close()
    monkeypatch.setattr(schema, "migrations", lambda: {1: ""})
    with pytest.raises(Unsupported, match=rf"version {newest}; this turnlog knows version 1") as caught:
        turnlog.open(database)
    assert caught.value.hint == "upgrade turnlog"


def test_who_finds_other_tables_is_told_and_nothing_is_changed(database: str, admin: psycopg.Connection):
    """As a process of this version will be, once a later one has changed the tables under it."""
    store = store_postgres.connect(database)
    log = store.create("s", [start("s")])
    admin.execute("alter table turnlog.session rename column last_ms to last_us")
    with pytest.raises(Unsupported, match="last_ms") as caught:
        log.append([draft(Note(text="x"))], after=0, head=0)
    assert "a newer turnlog changed the tables" in str(caught.value.hint)
    admin.execute("alter table turnlog.session rename column last_us to last_ms")
    assert log.append([draft(Note(text="x"))], after=0, head=0)[0].seq == 2
    store.close()


def test_a_long_migration_may_take_longer_than_any_question(database: str, monkeypatch: pytest.MonkeyPatch):
    real = schema.migrations()
    monkeypatch.setattr(schema, "migrations", lambda: {**real, 9000: "select pg_sleep(1)"})
    store = store_postgres.connect(database, patience=0.5)
    with pytest.raises(Unavailable, match="statement timeout"):
        store._pool.rows("sleeping", "select pg_sleep(1)")
    store.close()


def test_what_the_catalog_read_by_older_rules_is_read_again(admin: psycopg.Connection, database: str):
    admin.execute(schema._FIRST)
    for number in range(1, 6):
        admin.execute(schema.migrations()[number].encode())
        admin.execute("insert into turnlog.migration (number) values (%s)", (number,))
    [(tenant,)] = admin.execute("insert into turnlog.tenant (name) values ('one') returning num").fetchall()
    row = "(tenant, id, name, native, is_ours, turns) values (%s, 1, 's', 's', true, 9)"
    admin.execute(f"insert into turnlog.catalog_sessions {row}".encode(), (tenant,))
    admin.execute("insert into turnlog.catalog_meta (tenant, key, value) values (%s, 'sessions', 1)", (tenant,))
    with turnlog.open(f"{database}?tenant=one") as home, home.create(id="s") as session:
        session.user("hello")
    for table in ("sessions", "meta"):
        assert admin.execute(f"select count(*) from turnlog.catalog_{table}".encode()).fetchall() == [(0,)]
    with turnlog.Catalog(f"{database}?tenant=one", agents=False) as catalog:
        assert [(card.turns, card.is_conversation) for card in catalog.cards()] == [(1, True)]
