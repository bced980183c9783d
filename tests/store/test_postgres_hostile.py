"""A role that is bound to one tenant and tries everything that SQL has, with the rights of the guide and no others."""

import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest
from psycopg import sql

import turnlog
from tests.pgserver import Server
from turnlog.session.interior import interior
from turnlog.store import derived
from turnlog.store.postgres import schema

SECRET = "the secret of one"
OLD_GUIDE = """
grant usage on schema turnlog to app;
grant select on turnlog.migration to app;
grant select, insert, update on turnlog.tenant to app;
grant select, insert, update, delete on
    turnlog.session, turnlog.entry, turnlog.blob, turnlog.piece, turnlog.derived to app;
grant select, insert, update, delete on
    turnlog.own_sessions, turnlog.own_docs, turnlog.own_texts, turnlog.own_words, turnlog.own_paths,
    turnlog.own_touched, turnlog.own_spent, turnlog.own_quarters, turnlog.own_meta to app;
grant usage on sequence turnlog.number to app;
"""
DEFINERS = """
select p.oid::regprocedure::text, p.proconfig, has_function_privilege('public', p.oid, 'execute')
from pg_proc as p where p.pronamespace = 'turnlog'::regnamespace and p.prosecdef
"""
UNIQUE = """
select i.indexrelid::regclass::text, a.attname from pg_index as i
join pg_class as c on c.oid = i.indrelid join pg_attribute as a on a.attrelid = c.oid and a.attnum = i.indkey[0]
where c.relnamespace = 'turnlog'::regnamespace and i.indisunique
    and c.relname not in ('migration', 'member', 'tenant')
"""
RIGHTS = """
select c.relname, a.attname, a.privilege_type from (
    select c.relname, null::name as attname, (aclexplode(c.relacl)).* from pg_class as c
    where c.relnamespace = 'turnlog'::regnamespace
    union all select c.relname, t.attname, (aclexplode(t.attacl)).* from pg_class as c
    join pg_attribute as t on t.attrelid = c.oid where c.relnamespace = 'turnlog'::regnamespace
    union all select p.proname, null, (aclexplode(p.proacl)).* from pg_proc as p
    where p.pronamespace = 'turnlog'::regnamespace
) as a join pg_roles as r on r.oid = a.grantee, lateral (select a.relname) as c where r.rolname = %s
"""


@dataclass
class Place:
    """A database with one tenant in it, and a role that is bound to another."""

    database: str
    role: str

    @property
    def hostile(self) -> str:
        return self.database.replace("postgres@", f"{self.role}@")

    def one(self) -> turnlog.Home:
        return turnlog.open(f"{self.database}?tenant=one")

    def connect(self, url: str = "") -> psycopg.Connection:
        return psycopg.connect(url or self.hostile, autocommit=True)


def made(postgres: Server) -> Place:
    database = postgres.database(f"d{uuid.uuid4().hex}")
    with turnlog.open(f"{database}?tenant=one") as home:
        home.create(id="s", title=SECRET).user(SECRET)
        home.put_blob(SECRET.encode())
        derived.save(interior(home).store, "index", SECRET.encode())
    with turnlog.Catalog(f"{database}?tenant=one", agents=False) as catalog:
        assert catalog.search("secret")
    role = postgres.role()
    postgres.grant(database, role)
    with psycopg.connect(database, autocommit=True) as admin:
        admin.execute("insert into turnlog.member (role, tenant) values (%s, 'two')", (role,))
    return Place(database, role)


@pytest.fixture(scope="module")
def place(postgres: Server) -> Place:
    return made(postgres)


@pytest.fixture
def hostile(place: Place) -> Iterator[psycopg.Connection]:
    with place.connect() as connection:
        connection.execute("select set_config('turnlog.tenant', 'one', false)")
        yield connection


@pytest.fixture
def admin(place: Place) -> Iterator[psycopg.Connection]:
    with place.connect(place.database) as connection:
        yield connection


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


def test_every_function_of_the_owner_looks_names_up_where_nobody_else_can_put_any(admin: psycopg.Connection):
    found = admin.execute(DEFINERS).fetchall()
    assert len(found) > 5
    for name, config, is_public in found:
        assert config == ["search_path=pg_catalog, pg_temp"], name
        assert not is_public, name


def shadow(connection: psycopg.Connection) -> list[tuple[str, str]]:
    """Types, operators and functions under the names of the common ones; returns what ran as whom, as it grows."""
    ran: list[tuple[str, str]] = []
    connection.add_notice_handler(lambda notice: ran.append(tuple(str(notice.message_primary).split(" as ", 1))))
    connection.execute(
        "create function pg_temp.spy(what pg_catalog.text) returns pg_catalog.bool language plpgsql as "
        "$$ begin raise notice '% as %', what, current_user; return true; end $$"
    )
    types = ["text", "name", "int", "int4", "int8", "integer", "bigint", "bool", "boolean", "tsquery", "uuid", "bytea"]
    for name in types:
        base = {"int": "int4", "integer": "int4", "bigint": "int8", "boolean": "bool"}.get(name, name)
        query = "create domain pg_temp.{} as pg_catalog.{} check (pg_temp.spy({}))"
        connection.execute(sql.SQL(query).format(sql.Identifier(name), sql.Identifier(base), sql.Literal(name)))
    connection.execute(
        "create function pg_temp.coalesced(a pg_catalog.name, b pg_catalog.name) returns pg_catalog.bool "
        "language sql as $$ select pg_temp.spy('=') $$"
    )
    connection.execute(
        "create operator pg_temp.= "
        "(leftarg = pg_catalog.name, rightarg = pg_catalog.name, function = pg_temp.coalesced)"
    )
    for function in (
        "current_setting(pg_catalog.text, pg_catalog.bool)",
        "array_agg(pg_catalog.int8)",
        "unnest(int8[])",
    ):
        connection.execute(
            f"create function pg_temp.{function} returns pg_catalog.text language sql as "
            "$$ select 'one'::pg_catalog.text from (select pg_temp.spy('function')) as ran $$".encode()
        )
    connection.execute("create temp table member (role pg_catalog.name, tenant pg_catalog.text)")
    connection.execute("create temp table tenant (num pg_catalog.int4, name pg_catalog.text)")
    connection.execute("set search_path = pg_temp, pg_catalog, turnlog, public")
    return ran


def test_what_is_shadowed_runs_for_nobody_else(hostile: psycopg.Connection, place: Place):
    ran = shadow(hostile)
    for call in (
        "turnlog.tenant_name()",
        "turnlog.tenant_num()",
        "turnlog.own_found('secret'::pg_catalog.tsquery, 0, 9223372036854775807, null, 99)",
        "turnlog.own_found('secret'::pg_catalog.tsquery, 0, 9223372036854775807, array[1]::pg_catalog.int8[], 99)",
        "turnlog.own_having('secret'::pg_catalog.tsquery, 0, 9223372036854775807)",
        "turnlog.drop_entries(1, 1, 0)",
        "turnlog.drop_session(1)",
        "turnlog.drop_pieces(array[1]::pg_catalog.int8[])",
        "turnlog.drop_blobs(array['']::pg_catalog.bytea[])",
        "turnlog.drop_leases(array['blobs']::pg_catalog.text[])",
        "turnlog.own_drop_docs(array[1]::pg_catalog.int8[])",
        "turnlog.own_drop_spent(1, 0, 9)",
        "turnlog.own_drop_quarters(1)",
        "turnlog.own_drop_meta(array['']::pg_catalog.text[])",
        "turnlog.own_forget(1)",
    ):
        hostile.execute(f"select {call}".encode(), prepare=False)
    for table in ("session", "entry", "blob", "piece", "derived", "lease", "own_texts", "own_words", "own_sessions"):
        assert hostile.execute(f"select count(*) from turnlog.{table}".encode()).fetchall() == [(0,)]
    assert {who for _, who in ran} <= {place.role}
    assert hostile.execute("select pg_temp.spy('here')").fetchall() == [(True,)]
    assert ran[-1] == ("here", place.role)
    with place.one() as home:
        assert home.resume("s").messages()[0].blocks[0].text == SECRET


@pytest.mark.parametrize(
    ("name", "column"),
    [
        *(("session", "id"), ("entry", "line"), ("blob", "digest"), ("piece", "data"), ("derived", "content")),
        *(("tenant", "name"), ("lease", "name"), ("own_sessions", "title"), ("own_docs", "entry")),
        *(("own_texts", "data"), ("own_words", "words"), ("own_paths", "path"), ("own_spent", "model")),
        *(("own_quarters", "model"), ("own_meta", "key")),
    ],
)
def test_a_condition_of_ones_own_sees_no_rows_of_others(hostile: psycopg.Connection, name: str, column: str):
    own = {row[0] for row in hostile.execute(f"select {column}::text from turnlog.{name}".encode()).fetchall()}
    seen: list[str] = []
    hostile.add_notice_handler(lambda notice: seen.append(str(notice.message_primary)))
    hostile.execute(
        "create function pg_temp.cheap(what anyelement) returns bool language plpgsql cost 0.0000001 as "
        "$$ begin raise notice '%', what; return false; end $$"
    )
    for way in ("enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan"):
        hostile.execute(
            f"set {way} = off".encode()
        )  # no index finds the rows of the tenant before the condition is asked
    hostile.execute(f"select count(*) from turnlog.{name} where pg_temp.cheap({column})".encode())
    with pytest.raises(psycopg.Error):
        hostile.execute("set row_security = off")
        hostile.execute(f"select count(*) from turnlog.{name} where pg_temp.cheap({column})".encode())
        raise psycopg.Error("a view shows what it shows")
    assert set(seen) <= own


def test_statistics_show_no_values_of_others(hostile: psycopg.Connection, admin: psycopg.Connection):
    admin.execute("analyze")
    shown = hostile.execute("select distinct tablename from pg_stats where schemaname = 'turnlog'").fetchall()
    assert shown == [("migration",)]
    for query in ("select * from pg_statistic", "select * from turnlog.member", "select * from turnlog.catalog_words"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            hostile.execute(query.encode())


def test_what_others_ask_is_not_shown(place: Place, hostile: psycopg.Connection):
    with place.connect(place.database) as other:
        other.execute("select 'the secret of one'")
        query = "select count(*) from pg_stat_activity where query ~ 'the secret of' and pid <> pg_backend_pid()"
        assert hostile.execute(query).fetchall() == [(0,)]


def test_nobody_becomes_somebody_else(place: Place, hostile: psycopg.Connection):
    for query in (
        "set role postgres",
        "set session authorization postgres",
        "reset session authorization",
        "reset role",
    ):
        try:
            hostile.execute(query.encode())
        except psycopg.errors.InsufficientPrivilege:
            pass
        assert hostile.execute("select turnlog.tenant_name(), session_user::text").fetchall() == [("two", place.role)]
    for query in (
        f"insert into turnlog.member values ('{place.role}', 'one')",
        "update turnlog.tenant set name = 'one'",
        "alter table turnlog.session disable row level security",
        "create policy all_of_them on turnlog.session using (true)",
        "create trigger mine before insert on turnlog.entry execute function pg_temp.spy()",
        "create or replace function turnlog.tenant_num() returns int language sql as 'select 1'",
        "copy turnlog.entry to program 'cat'",
    ):
        with pytest.raises(psycopg.Error):
            hostile.execute(query.encode())


def test_a_refusal_tells_nothing_of_others(hostile: psycopg.Connection, admin: psycopg.Connection):
    [(one, num)] = admin.execute("select tenant, num from turnlog.session where id = 's'").fetchall()
    told: list[str] = []
    for key in ("s", "never"):  # which is there, and which is not
        with pytest.raises(psycopg.Error) as caught:
            hostile.execute(
                "insert into turnlog.session (num, tenant, key, id, place, root, made, first_seq, last_seq, last_ms, "
                "recent, last_fence, bytes) values (%s, %s, %s, 'x', 'live', 1, gen_random_uuid(), 1, 1, 1, 1, 0, 0)",
                (num, one, key.encode()),
            )
        told.append(f"{caught.value.sqlstate} {caught.value.diag.message_primary} {caught.value.diag.message_detail}")
    assert told[0] == told[1]
    assert "s" not in told[0].split()


# ── stopping others ───────────────────────────────────────────────────────────────────────────────


def test_the_tenant_leads_every_unique_key(admin: psycopg.Connection):
    found = admin.execute(UNIQUE).fetchall()
    assert len(found) > 20
    assert [name for name, first in found if first != "tenant"] == []


def works(place: Place) -> None:
    """Everything that somebody else does in the same database."""
    name = uuid.uuid4().hex
    with turnlog.open(f"{place.database}?tenant=one") as home:
        session = home.create(id=name)
        session.user("hello")
        session.user("a long one " * 10_000)
        assert len(home.resume(name).messages()) == 2
        home.put_blob(name.encode())
        home.gc()
        home.delete(name)
        home.purge(name)


def test_no_number_can_be_taken_before_others_get_to_it(place: Place, hostile: psycopg.Connection):
    with turnlog.open(f"{place.hostile}?tenant=two") as home:
        home.create(id="mine").user("x")
    hostile.execute(
        "insert into turnlog.session (num, tenant, key, id, place, root, made, first_seq, last_seq, last_ms, recent, "
        "last_fence, bytes) select n, turnlog.tenant_num(), n::text::bytea, n::text::bytea, 'live', n, "
        "gen_random_uuid(), 1, 1, 1, 1, 0, 0 from generate_series(1, 500) as n on conflict do nothing"
    )
    hostile.execute(
        "insert into turnlog.entry (root, session, tenant, seq, key, line) "
        "select n, n, turnlog.tenant_num(), seq, seq::text::bytea, '' "
        "from generate_series(1, 500) as n, generate_series(1, 5) as seq on conflict do nothing"
    )
    hostile.execute(
        "insert into turnlog.piece (num, part, tenant, data) "
        "select n, 0, turnlog.tenant_num(), '' from generate_series(1, 500) as n on conflict do nothing"
    )
    works(place)
    for query in (
        "insert into turnlog.tenant (num, name) overriding system value values (7, 'two')",
        "update turnlog.tenant set num = default",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            hostile.execute(query.encode())
    with place.connect(place.database) as owner:
        for table in ("session", "entry", "piece"):
            owner.execute(
                f"delete from turnlog.{table} where tenant = (select num from turnlog.tenant where name = 'two')"
            )


def test_no_table_can_be_locked_against_others(place: Place, hostile: psycopg.Connection, admin: psycopg.Connection):
    names = admin.execute(
        "select oid::regclass::text from pg_class "
        "where relnamespace = 'turnlog'::regnamespace and relkind in ('r', 'p', 'v')"
    ).fetchall()
    assert len(names) > 25
    for (name,) in names:
        for mode in ("share update exclusive", "share", "share row exclusive", "exclusive", "access exclusive"):
            with hostile.transaction(), pytest.raises(psycopg.errors.InsufficientPrivilege), hostile.transaction():
                hostile.execute(f"lock table {name} in {mode} mode nowait".encode())


def test_whatever_locks_one_holds_others_go_on(place: Place, hostile: psycopg.Connection):
    """Every lock that can be had without a right to it, for as long as one likes."""
    with turnlog.open(f"{place.hostile}?tenant=two") as home, interior(home).store.keeping(), hostile.transaction():
        for table in ("tenant", "session", "lease", "derived"):
            hostile.execute(f"select from turnlog.{table} for update".encode())
        for space in (0x746C6F67, 0x746C6F68):
            hostile.execute("select pg_advisory_lock(%s, n) from generate_series(0, 50) as n", (space,))
        hostile.execute("select pg_advisory_lock(%s)", (0x7475726E6C6F67,))
        works(place)
        turnlog.open(f"{place.database}?tenant={uuid.uuid4()}").close()
        with turnlog.Catalog(f"{place.database}?tenant=one", agents=False) as catalog:
            assert catalog.search("secret")
    hostile.execute("select pg_advisory_unlock_all()")


def test_nobody_listens_to_others_or_shouts_at_them(place: Place, hostile: psycopg.Connection, admin):
    [(channel,)] = admin.execute("select 'turnlog_' || replace(channel::text, '-', '') from turnlog.tenant "
                                 "where name = 'one'").fetchall()  # fmt: skip
    assert hostile.execute("select count(*) from turnlog.tenant where name <> 'two'").fetchall() == [(0,)]
    hostile.execute("listen turnlog")
    with place.one() as home, place.one() as writer, place.connect(place.database) as other:
        other.execute(f"listen {channel}".encode())
        log = interior(home).store.open("s")
        thread = threading.Thread(target=lambda: log.wait(0, seconds=20))
        thread.start()
        while log._rows.num not in {what.num for what in interior(home).store._watch.listener.watched}:
            threading.Event().wait(0.01)
        writer.resume("s").note("news")
        assert [notice.payload for notice in other.notifies(timeout=10, stop_after=1)] == [str(log._rows.num)]
        thread.join()
    assert list(hostile.notifies(timeout=0)) == []


# ── from before ───────────────────────────────────────────────────────────────────────────────────


def test_a_role_with_the_rights_of_before_works_and_has_those_of_the_guide(postgres: Server):
    database, old, new = postgres.database(f"d{uuid.uuid4().hex}"), postgres.role(), postgres.role()
    with psycopg.connect(database, autocommit=True) as admin:
        admin.execute(schema._FIRST)
        for number in (1, 2, 3):
            admin.execute(schema.migrations()[number].encode())
            admin.execute("insert into turnlog.migration (number) values (%s)", (number,))
        admin.execute(OLD_GUIDE.replace(" app;", f" {old};").encode())
        admin.execute("insert into turnlog.tenant (name) values ('two')")
        admin.execute("insert into turnlog.member (role, tenant) values (%s, 'two')", (old,))
        turnlog.open(database).close()
        postgres.grant(database, new)
        assert set(admin.execute(RIGHTS, (old,)).fetchall()) == set(admin.execute(RIGHTS, (new,)).fetchall())
    place = Place(database, old)
    with turnlog.open(f"{place.hostile}?tenant=two") as home:
        session = home.create(id="s", title="found again")
        session.user("words " * 20_000)
        session.fork(id="fork")
        home.put_blob(b"gone")
        assert home.gc().blobs == 1
        home.delete("s")
        home.restore("s")
        with turnlog.Catalog(f"{place.hostile}?tenant=two", agents=False) as catalog:
            assert catalog.search("words")
        home.purge("s")
        home.purge("fork")
        with turnlog.Catalog(f"{place.hostile}?tenant=two", agents=False) as catalog:
            assert not catalog.search("words")
