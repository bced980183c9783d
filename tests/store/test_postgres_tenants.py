"""Nothing of one tenant is to be had by another: through the store, by SQL, by guessing numbers, by lying."""

import uuid
from collections.abc import Callable
from functools import partial

import psycopg
import pytest

import turnlog
from tests.pgserver import Server
from turnlog.errors import NotFound, Unsupported
from turnlog.log.entry import Note
from turnlog.log.payload import digest
from turnlog.session.interior import interior
from turnlog.store import derived
from turnlog.store import postgres as store_postgres
from turnlog.store.postgres.rows import LogEnd, LogRow
from turnlog.testing import draft, message_draft

SECRET = b"a secret of one" * 100
TABLES = ("session", "entry", "blob", "piece", "derived")


@pytest.fixture(scope="module")
def server(postgres: Server) -> tuple[str, str, str]:
    """A database in which `one` has a session and a blob; a role with the usual rights, and one bound to `two`."""
    database = postgres.database(f"tenants-{uuid.uuid4()}")
    with turnlog.open(f"{database}?tenant=one") as home:
        home.create(id="s", title="of one").user("hello from one")
        home.create(id="only one").user("hello from one")
        home.put_blob(SECRET)
        derived.save(interior(home).store, "index", b"of one")
    free, bound = postgres.role(), postgres.role()
    for role in (free, bound):
        postgres.grant(database, role)
    with psycopg.connect(database) as admin:
        admin.execute("insert into turnlog.member (role, tenant) values (%s, 'two')", (bound,))
    return database, free, bound


@pytest.fixture
def as_role(server: tuple[str, str, str]) -> Callable[[str], str]:
    database, free, bound = server
    return lambda who: database.replace("postgres@", f"{ {'free': free, 'bound': bound}[who] }@")


@pytest.fixture
def sql(as_role: Callable[[str], str]):
    """A way to ask as a role that says it is a tenant."""

    def ask(who: str, tenant: str, query: str, values: tuple = ()) -> list:
        with psycopg.connect(as_role(who), autocommit=True) as connection:
            connection.execute("select set_config('turnlog.tenant', %s, false)", (tenant,))
            done = connection.execute(query, values)
            return done.fetchall() if done.description else [done.rowcount]

    return ask


def test_tenants_share_no_ids_and_no_blobs(server: tuple[str, str, str]):
    database = server[0]
    with turnlog.open(f"{database}?tenant=one") as one, turnlog.open(f"{database}?tenant=three") as three:
        assert three.sessions() == []
        assert not interior(three).store.has(digest(SECRET))
        for look in (
            three.resume,
            three.delete,
            three.restore,
            three.purge,
            partial(interior(three).store.open, read_only=True),
        ):
            with pytest.raises(NotFound):
                look("only one")
        three.create(id="s", title="of three")
        assert {info.title for info in one.sessions()} == {"of one", None}
        three.put_blob(SECRET)
        three.gc()
        assert not interior(three).store.has(digest(SECRET))
        assert one.get_blob(digest(SECRET)) == SECRET
        three.purge("s")
        assert len(one.sessions()) == 2


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("who", ["free", "bound"])
def test_rows_of_others_are_not_seen_changed_or_removed(sql, who: str, table: str):
    assert sql("free", "one", f"select count(*) from turnlog.{table}")[0][0] > 0
    assert sql(who, "two", f"select count(*) from turnlog.{table}") == [(0,)]
    for query in (f"delete from turnlog.{table}", f"update turnlog.{table} set tenant = tenant"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            sql(who, "two", query)
    assert sql("free", "one", f"select count(*) from turnlog.{table}")[0][0] > 0


@pytest.mark.parametrize("lie", ["one", "", "two' or true --"])
@pytest.mark.parametrize("table", TABLES)
def test_a_bound_role_stays_who_it_is_whatever_it_says(sql, lie: str, table: str):
    assert sql("bound", lie, f"select count(*) from turnlog.{table}") == [(0,)]
    assert sql("bound", lie, "select turnlog.tenant_name()") == [("two",)]


def test_a_bound_role_cannot_open_another_tenant(as_role):
    for tenant in ("one", "never seen"):
        with pytest.raises(Unsupported):
            turnlog.open(f"{as_role('bound')}?tenant={tenant}")
    with turnlog.open(f"{as_role('bound')}?tenant=two") as home:
        home.create(id="s").user("hello from two")
        assert [info.id for info in home.sessions()] == ["s"]
        home.purge("s")


@pytest.mark.parametrize("who", ["free", "bound"])
def test_nothing_is_planted_among_the_rows_of_others(server, sql, who: str):
    with psycopg.connect(server[0]) as admin:
        [(one, session, root)] = admin.execute(
            "select tenant, num, root from turnlog.session where id = 'only one'"
        ).fetchall()
    plants = [
        ("insert into turnlog.entry values (%s, %s, 999, %s, 'k', 'line')", (root, session, one)),
        ("insert into turnlog.blob values (%s, %s, 1, 1, 1)", (one, b"d" * 32)),
        ("insert into turnlog.piece values (1, 77, %s, 'data')", (one,)),
        ("insert into turnlog.lease values (%s, 'blobs', gen_random_uuid(), 'two', 'infinity')", (one,)),
        ("insert into turnlog.derived values (%s, 'planted', 'data')", (one,)),
        (
            "insert into turnlog.session values (0, %s, 'k', 'k', 'live', 0, gen_random_uuid(),"
            " null, null, 1, 1, 1, 0, null, 0)",
            (one,),
        ),
        ("insert into turnlog.tenant (name) values ('somebody')", ()),
    ]
    for query, values in plants:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            sql(who, "two", query, values)
    for query in ("select * from turnlog.member", "select * from turnlog.entry_3", "truncate turnlog.entry"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            sql(who, "two", query)


@pytest.mark.parametrize("who", ["free", "bound"])
def test_a_number_that_was_guessed_opens_nothing(server, as_role, who: str):
    with psycopg.connect(server[0]) as admin:
        query = "select num, root, last_seq, last_ms from turnlog.session where id = 'only one'"
        [(num, root, seq, at)] = admin.execute(query).fetchall()
        before = admin.execute("select count(*), max(seq) from turnlog.entry where session = %s", (num,)).fetchall()
    store = store_postgres.connect(f"{as_role(who)}?tenant=two")
    log = store._log(LogRow("only one", num, root, LogEnd(seq, at)))
    with pytest.raises(NotFound):
        list(log.read())
    with pytest.raises(NotFound):
        log.append([draft(Note(text="planted"))], after=0, head=0)
    with pytest.raises(NotFound):
        log.append([message_draft("planted")], after=seq, head=seq)
    assert log.find("anything") is None
    store.close()
    with psycopg.connect(server[0]) as admin:
        after = admin.execute("select count(*), max(seq) from turnlog.entry where session = %s", (num,)).fetchall()
    assert after == before


def test_a_tenant_may_have_any_name(server: tuple[str, str, str]):
    from urllib.parse import quote

    for name in ("a b", "ä/ö?&=%", "'; drop schema turnlog cascade; --", "x" * 3000):
        with turnlog.open(f"{server[0]}?tenant={quote(name, safe='')}") as home:
            home.create(id="s")
            assert home.health()["tenant"] == name
            assert [info.id for info in home.sessions()] == ["s"]
