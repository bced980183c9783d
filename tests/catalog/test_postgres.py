"""Our own sessions in PostgreSQL are found, listed and summed up there, as they would be in a folder."""

import re
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import turnlog
from tests.catalog.plain import MINUTE, NOW, Doc, Plain, naive
from tests.catalog.test_search import QUERIES, TEXTS, understood
from tests.pgserver import Server
from turnlog.catalog import Card, Catalog
from turnlog.catalog.answer import Hits
from turnlog.catalog.ask.usage import GROUPS
from turnlog.catalog.index import prices
from turnlog.catalog.index.postgres.writer import PostgresWriter
from turnlog.catalog.index.sqlite.schema import TABLES
from turnlog.errors import Invalid, NotFound, Unavailable, Unsupported
from turnlog.log.block import Text, ToolCall
from turnlog.log.entry import Compaction, Message
from turnlog.session.interior import interior
from turnlog.testing import ManualClock

VIEWS = ("sessions", "docs", "texts", "words", "paths", "touched", "spent", "quarters", "meta")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def anew(postgres: Server) -> Callable[[], str]:
    """Empty places in the database, one after the other."""
    return lambda: f"{postgres.url}?tenant={uuid.uuid4()}"


def ask(location: str, **more: Any) -> Catalog:
    return Catalog(location, agents=False, **more)


def entries(location: str, query: str) -> list[str]:
    with ask(location) as catalog:
        return [hit.entry for hit in catalog.search(query, limit=100)]


def put(location: str, sessions: list[Plain]) -> None:
    """Sessions as a program would make them."""
    clock = ManualClock(NOW)
    with turnlog.open(location, clock=clock, checkpoints=False) as home:
        for number, plain in enumerate(sessions, 1):
            made = home.create(id=f"s{number}", agent=plain.agent, title=plain.title)
            made.set("tags", list(plain.tags))
            for step, doc in enumerate(plain.docs, 1):
                clock.now = doc.at
                made.append(Message(role=doc.role, blocks=[Text(text=doc.text)]), id=f"e{number}-{step}")


@st.composite
def told(draw: st.DrawFn) -> list[Plain]:
    """Sessions in which nothing was said at the same moment."""
    sessions: list[Plain] = []
    at = NOW
    for _ in range(draw(st.integers(0, 3))):
        docs: list[Doc] = []
        for _ in range(draw(st.integers(0, 4))):
            at += MINUTE
            docs.append(Doc(draw(TEXTS.filter(str.strip)), at, draw(st.sampled_from(["user", "assistant"]))))
        agent, title = draw(st.sampled_from(["codex", "claude-code"])), draw(st.sampled_from(["Fix it", "100% of_it"]))
        sessions.append(
            Plain(tuple(docs), agent, title=title, tags=draw(st.sampled_from([(), ("urgent",), ("a", "b")])))
        )
    return sessions


@given(told(), st.lists(QUERIES, min_size=1, max_size=4))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_search_finds_what_a_reader_of_everything_would(anew: Any, sessions: list[Plain], queries: list[str]):
    location = anew()
    put(location, sessions)
    with ask(location) as catalog:
        for query in queries:
            # Nothing has a workspace or was touched here, and it is another time than the query means.
            if understood(query) and not re.search("workspace|tool|file|since|until", query):
                assert [hit.entry for hit in catalog.search(query, limit=100)] == naive(sessions, query), query


def test_sessions_in_a_database_count_as_indexed(anew: Callable[[], str]):
    location = anew()
    with turnlog.open(location, checkpoints=False) as home:
        for _ in range(3):
            home.create().user("one two")
    with ask(location) as catalog:
        standing = catalog.standing()
        assert (standing.indexed, standing.pending) == (3, 0)
        assert standing.since == min(card.created_at for card in catalog.cards() if card.created_at is not None)


# ── the same as in a folder ───────────────────────────────────────────────────────────────────────


def work(location: str) -> None:
    """A bit of everything, with the same ids and at the same times wherever it happens."""
    clock = ManualClock(NOW)
    with turnlog.open(location, clock=clock, checkpoints=False) as home:

        def say(session: turnlog.Session, number: int, text: str, **more: Any) -> None:
            clock.tick(MINUTE * 7)
            usage = turnlog.Usage(input_tokens=100 * number, output_tokens=number)
            session.append(Message(role="user", blocks=[Text(text=text)]), id=f"{session.id}-u{number}")
            clock.tick(MINUTE)
            session.append(
                Message(
                    role="assistant",
                    blocks=[
                        Text(text=f"on {text}"),
                        ToolCall(id=f"c{number}", name="Edit", input={"path": f"src/{number}.py"}),
                    ],
                    model=more.get("model", "claude-sonnet-4-5"),
                    request=f"{session.id}-r{number}",
                    usage=usage,
                ),
                id=f"{session.id}-a{number}",
            )

        one = home.create(id="20261115-070000-aaaaaaaa", agent="me", title="The first", workspace="/")
        for number in range(1, 5):
            say(one, number, f"session_latest number {number}, été")
        one.set("tags", ["urgent", "later"])
        fork = one.fork(id="20261115-080000-bbbbbbbb", name="other")
        say(fork, 9, "only in the fork", model="nobody-knows-this-model")
        child = one.spawn(agent="helper", call="c1", id="20261115-080100-cccccccc")
        say(child, 5, "of a subagent")
        gone = home.create(id="deleted", title="In the trash")
        say(gone, 6, "thrown away")
        home.delete("deleted")
        hidden = home.create(id="hidden one", hidden=True)
        say(hidden, 7, "where nobody looks")
        archived = home.create(id="archive\n; drop")
        say(archived, 8, "long ago")
        archived.set("archived", True)
        clock.tick(MINUTE)
        one.append(
            Compaction(replacement=[Message(role="user", blocks=[Text(text="what was before, in short")])], keep=0),
            id="compaction",
        )


def plain(card: Card) -> Card:
    return card._replace(path="", size_bytes=0, state="")


def shown(hits: Hits) -> list[tuple[Any, ...]]:
    return [(plain(hit.card), *hit[1:-1]) for hit in hits]


@pytest.fixture
def both(anew: Callable[[], str], tmp_path: Path) -> Iterator[tuple[Catalog, Catalog]]:
    places = str(tmp_path / "home"), anew()
    for place in places:
        work(place)
    with ask(places[0]) as folder, ask(places[1]) as server:
        yield folder, server


def test_the_cards_are_the_same(both: tuple[Catalog, Catalog]):
    queries = (
        "", "is:fork", "is:subagent", "is:archived", "is:hidden", "tag:urgent", "-tag:urgent", "title:FIRST",
        "cost:>0.0001",
        "session_latest", "ession_la", "fork", '"number 3"', "file:src/3.py", "-file:3.py", "tool:edit", "role:summary",
        "model:sonnet", "since:2026-11-01", "until:2026-01-01", "number since:2020-01-01", "session:2026",
        "is:idle,crashed", "is:stopped",
    )  # fmt: skip
    for query in queries:
        for how in ({}, {"everything": True}, {"deleted": True}, {"limit": 1}):
            folder, server = ([plain(card) for card in catalog.cards(query, **how)] for catalog in both)
            assert folder == server, (query, how)
        folder, server = ([line._replace(state="") for line in catalog.lines(query)] for catalog in both)
        assert folder == server, query
    assert len(both[1].cards("", everything=True)) == 5


def test_the_hits_are_the_same(both: tuple[Catalog, Catalog]):
    queries = (
        "session_latest", "ession_la", "number", "number -3", '"number 3"', '-"number 3" number', "ete", "numb*",
        "*umber*",
        "on role:assistant", "fork agent:me", "trash", "thrown", "subagent", "where -is:hidden", "short role:summary",
        "on file:src/3.py", "on tool:edit,bash", "on since:2020", "role:user", "nothing at all",
    )  # fmt: skip
    for query in queries:
        folder, server = (shown(catalog.search(query, limit=3)) for catalog in both)
        assert folder == server, query
    pages: list[str] = []
    before = None
    while True:
        page = both[1].search("number", limit=2, before=before)
        pages += [hit.entry for hit in page]
        before = page.next
        if before is None:
            break
    assert pages == [hit.entry for hit in both[0].search("number", limit=100)]
    assert len(pages) == 8


def test_the_sums_are_the_same(both: tuple[Catalog, Catalog]):
    for query in ("", "agent:me", "number", "model:sonnet", "-model:sonnet", "is:fork", "since:2026-11-15T12:07"):
        for by in GROUPS:
            folder, server = (catalog.usage(query, by=by) for catalog in both)
            assert folder == server, (query, by)
    total = both[1].usage()[-1]
    assert total.requests == 9  # those of the fork's parent count once, and what is in the trash was spent, too
    assert total.unpriced == ("nobody-knows-this-model",)


def test_names_are_the_same(both: tuple[Catalog, Catalog]):
    for name in ("aaaaaaaa", "bbbb", "20261115-0801", "archive", "hidden one", "latest"):
        folder, server = (plain(catalog.find(name)) for catalog in both)
        assert folder == server
    for catalog in both:
        with pytest.raises(NotFound):
            catalog.find("deleted")
        with pytest.raises(NotFound, match="fits 3 sessions"):
            catalog.find("20261115")
        assert catalog.find("deleted", deleted=True).title == "In the trash"


def test_the_columns_are_those_of_the_catalog(both: tuple[Catalog, Catalog], postgres: Server):
    with psycopg.connect(postgres.url) as admin:
        for table, text in re.findall(r"CREATE TABLE (\w+) \(\n(.*?)\n\)", TABLES, re.DOTALL):
            if table not in VIEWS:
                continue
            here = set(re.findall(r"^    (\w+)\b(?! KEY)", text, re.MULTILINE)) - {"PRIMARY"}
            here -= {"at", "bundle", "number"} if table == "docs" else set()  # there, the id tells
            query = (
                "select column_name from information_schema.columns where table_schema = 'turnlog' and table_name = %s"
            )
            there = {row[0] for row in admin.execute(query, (f"own_{table}",))}
            assert here <= there and "tenant" not in there, table


# ── catching up ───────────────────────────────────────────────────────────────────────────────────


def test_only_what_is_new_is_read(anew: Callable[[], str]):
    location = anew()
    work(location)
    with ask(location) as catalog:
        assert catalog.sync().read == 6
        assert catalog.sync().read == 0
        with turnlog.open(location) as home:
            home.resume("20261115-070000-aaaaaaaa").user("something new")
            home.create(id="another").user("something else")
            assert catalog.sync().read == 2
            assert catalog.search("something new")[0].card.name == "aaaaaaaa"
            assert catalog.search("something else")[0].card.name == "another"


def test_what_is_deleted_restored_and_purged_is_known_at_once(anew: Callable[[], str], postgres: Server):
    location = anew()
    work(location)
    with ask(location) as catalog:
        assert catalog.search("thrown") == []
        with turnlog.open(location) as home:
            home.restore("deleted")
            assert len(catalog.search("thrown")) == 2
            assert catalog.sync().read == 0
            requests = catalog.usage()[-1].requests
            home.purge("deleted")
            assert catalog.search("thrown") == []
            catalog.sync()
            assert catalog.usage()[-1].requests == requests - 1
            home.purge("20261115-070000-aaaaaaaa")  # the fork now counts what it had from it
            catalog.sync()
            assert catalog.search("number") == []
    with psycopg.connect(postgres.url) as admin:
        admin.execute("select set_config('turnlog.tenant', %s, false)", (location.partition("=")[2],))
        for view in ("docs", "words", "spent", "quarters"):
            left = f"select count(*) from turnlog.own_{view} where session not in (select id from turnlog.own_sessions)"
            assert admin.execute(left).fetchall() == [(0,)]
        left = "select count(*) from turnlog.own_texts where id not in (select id from turnlog.own_docs)"
        assert admin.execute(left).fetchall() == [(0,)]


def test_clocks_do_not_decide_what_is_new(anew: Callable[[], str]):
    location = anew()
    work(location)
    with ask(location) as catalog:
        catalog.sync()
        with turnlog.open(location, clock=ManualClock(NOW - 24 * 60 * MINUTE)) as home:
            home.create(id="from yesterday").user("said on a slow machine")
            assert catalog.sync().read == 1
            assert len(catalog.search("slow machine")) == 1
            home.resume("from yesterday").user("and another slow one")
            assert catalog.sync().read == 1
            assert len(catalog.search("slow")) == 2


@pytest.mark.parametrize("tables", [VIEWS, ("sessions", "meta"), ("meta",)])
def test_what_was_deleted_by_hand_is_made_again(anew: Callable[[], str], postgres: Server, tables: tuple[str, ...]):
    location = anew()
    work(location)
    with ask(location) as catalog:
        before = [shown(catalog.search("on", limit=100)), catalog.usage(by="session"), catalog.cards(everything=True)]
        with psycopg.connect(postgres.url, autocommit=True) as admin:
            admin.execute("select set_config('turnlog.tenant', %s, false)", (location.partition("=")[2],))
            for table in tables:
                admin.execute(f"delete from turnlog.own_{table}".encode())
        assert catalog.sync().read == (6 if "sessions" in tables else 0)
        after = [shown(catalog.search("on", limit=100)), catalog.usage(by="session"), catalog.cards(everything=True)]
        assert after == before


def test_interrupted_it_goes_on_where_it_was(anew: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    location = anew()
    work(location)
    work(str(tmp_path / "home"))
    monkeypatch.setattr(PostgresWriter, "most", 1)  # every text is written by itself

    def stop(what: str, done: int, total: int) -> None:
        if done > total // 2:
            raise KeyboardInterrupt

    with ask(location, progress=stop) as catalog, pytest.raises(KeyboardInterrupt):
        catalog.sync()
    with ask(location) as catalog, ask(str(tmp_path / "home")) as folder:
        assert shown(catalog.search("on", limit=100)) == shown(folder.search("on", limit=100))
        assert catalog.usage(by="session") == folder.usage(by="session")
        assert list(map(plain, catalog.cards(everything=True))) == list(map(plain, folder.cards(everything=True)))


def test_what_had_no_price_is_tried_again_with_other_prices(anew: Callable[[], str], monkeypatch: pytest.MonkeyPatch):
    location = anew()
    work(location)
    with monkeypatch.context() as patch, ask(location) as catalog:
        patch.setattr(prices, "terms_of", lambda model, at: prices.Terms(None))
        patch.setattr(prices, "stamp", lambda: "before")
        total = catalog.usage()[-1]
        assert total.tokens.cost_micros == 0
        assert total.unpriced == ("claude-sonnet-4-5", "nobody-knows-this-model")
    with turnlog.open(location) as home, ask(location) as catalog:
        home.resume("20261115-070000-aaaaaaaa").note("something new")
        total = catalog.usage()[-1]
        assert total.tokens.cost_micros > 0
        assert total.unpriced == ("nobody-knows-this-model",)


def test_connections_that_are_cut_cost_nothing(anew: Callable[[], str], postgres: Server):
    location = anew()
    work(location)

    def cut(what: str, done: int, total: int) -> None:
        if done > total // 2 and not cuts:
            cuts.append(done)
            with psycopg.connect(postgres.url, autocommit=True) as admin:
                connections = interior(catalog._open_home()).store._pool.connections  # pyright: ignore
                for one in connections._idle:
                    admin.execute("select pg_terminate_backend(%s)", (one.info.backend_pid,))

    cuts: list[int] = []
    with ask(location, progress=cut) as catalog:
        assert catalog.sync().read == 6
        assert cuts
        assert len(catalog.search("number", limit=100)) == 8
        assert catalog.usage()[-1].requests == 9


def test_many_ask_at_once_and_all_get_the_whole_answer(anew: Callable[[], str]):
    location = anew()
    work(location)
    found: list[int] = []
    trouble: list[BaseException] = []

    def one() -> None:
        try:
            found.append(len(entries(location, "number")))
        except BaseException as error:
            trouble.append(error)

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not trouble
    assert found == [8] * 6


def test_appending_goes_on_while_it_is_read(anew: Callable[[], str]):
    location = anew()
    work(location)
    with turnlog.open(location) as home:
        session = home.resume("20261115-070000-aaaaaaaa")

        def more(what: str, done: int, total: int) -> None:
            session.user("meanwhile")

        with ask(location, progress=more) as catalog:
            catalog.sync()
        session.user("afterwards")
        with ask(location) as catalog:
            count = len(catalog.search("meanwhile", limit=100))
            assert count == sum(1 for message in session.messages() if "meanwhile" in str(message))
            assert len(catalog.search("afterwards")) == 1


@given(st.lists(st.sampled_from(["'", '"', "\\", ":", "*", "&", "|", "!", "<->", "(", ")", "foo", " ", "%s",
                                 "%", ";", "--"]), max_size=10).map("".join))  # fmt: skip
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_query_is_ever_taken_for_a_command_to_the_database(anew: Any, text: str):
    location = _HOSTILE.setdefault("it", anew())
    if "made" not in _HOSTILE:
        put(location, [Plain((Doc("foo & bar"),))])
        _HOSTILE["made"] = "yes"
    with ask(location) as catalog:
        for query in (text, f"agent:{text}", f'title:"{text}"', f"tool:{text}", f"file:{text}", f"session:{text}"):
            try:
                catalog.search(query)
                catalog.cards(query)
                catalog.usage(query)
            except Invalid:
                continue
        assert len(catalog.search("foo")) == 1


_HOSTILE: dict[str, str] = {}


def test_text_that_a_database_cannot_hold_is_found_all_the_same(anew: Callable[[], str]):
    location = anew()
    words = " ".join(f"w{number:06}" for number in range(200_000))
    put(location, [Plain((Doc("before\0after " + "x" * 5000), Doc("été ÖL ωμέγα Жук"), Doc(words + " the_end(")))])
    assert entries(location, "before") == ["e1-1"]
    assert entries(location, "x" * 300 + "*") == ["e1-1"]
    assert entries(location, "ETE öl ΩΜΈΓΑ жук") == ["e1-2"]
    assert entries(location, "w000007") == ["e1-3"]
    with ask(location) as catalog:
        assert catalog.cards()[0].messages == 3


def test_a_server_that_is_away_is_said():
    with pytest.raises(Unavailable), ask("postgresql://postgres@127.0.0.1:1/nothing") as catalog:
        catalog.search("x")


# ── tenants ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def tenants(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str]:
    """A database in which `one` has sessions and a catalog; a role with the usual rights, and one bound to `two`."""
    database = postgres.database(f"catalog-{uuid.uuid4()}")
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    work(f"{database}?tenant=one")
    with ask(f"{database}?tenant=one") as catalog:
        catalog.sync()
    patch.undo()
    turnlog.open(f"{database}?tenant=two").close()
    free, bound = postgres.role(), postgres.role()
    for role in (free, bound):
        postgres.grant(database, role)
    with psycopg.connect(database) as admin:
        admin.execute("insert into turnlog.member (role, tenant) values (%s, 'two')", (bound,))
    return database, database.replace("postgres@", f"{free}@"), database.replace("postgres@", f"{bound}@")


def sql(url: str, tenant: str, query: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("select set_config('turnlog.tenant', %s, false)", (tenant,))
        done = connection.execute(query.encode())
        return done.fetchall() if done.description else [done.rowcount]


@pytest.mark.parametrize("who", [0, 1, 2], ids=["owner", "free", "bound"])
def test_another_tenant_finds_nothing(tenants: tuple[str, str, str], who: int):
    with ask(f"{tenants[who]}?tenant=two") as catalog:
        assert catalog.cards(everything=True) == []
        for query in ("number", "*umber*", '"number 3"', "role:user", "ession_la", "-thrown number"):
            assert catalog.search(query) == []
        assert catalog.usage()[-1].requests == 0
        with pytest.raises(NotFound):
            catalog.find("aaaaaaaa")


def test_a_role_with_the_documented_rights_can_do_everything(tenants: tuple[str, str, str]):
    location = f"{tenants[1]}?tenant={uuid.uuid4()}"
    work(location)
    with ask(location) as catalog:
        assert len(catalog.search("number", limit=100)) == 8
        assert catalog.usage()[-1].requests == 9
        assert len(catalog.cards("on", everything=True)) == 5
    with turnlog.open(location) as home:
        home.purge("deleted")
    with ask(location) as catalog:
        assert catalog.usage()[-1].requests == 8


@pytest.mark.parametrize("lie", ["one", "two"])
@pytest.mark.parametrize("view", VIEWS[:-1])
def test_rows_of_others_are_not_seen_changed_or_removed(tenants: tuple[str, str, str], view: str, lie: str):
    _, free, bound = tenants
    count = sql(free, "one", f"select count(*) from turnlog.own_{view}")
    assert count[0][0] > 0
    for url, tenant in ((bound, lie), (free, "two")):
        assert sql(url, tenant, f"select count(*) from turnlog.own_{view}") == [(0,)]
        for query in (f"delete from turnlog.own_{view}", f"select count(*) from turnlog.catalog_{view}"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                sql(url, tenant, query)
        every = "select turnlog.own_forget(n), turnlog.own_drop_docs(array[n]) from generate_series(1, 99) as n"
        assert len(sql(url, tenant, every)) == 99
        wanted = "select count(*) from turnlog.own_found('number', 0, 9223372036854775807, null, 100)"
        assert sql(url, tenant, wanted) == [(0,)]
    assert sql(free, "one", f"select count(*) from turnlog.own_{view}") == count


def test_nothing_is_planted_among_the_rows_of_others(tenants: tuple[str, str, str]):
    _, free, bound = tenants
    before = sql(free, "one", "select count(*) from turnlog.own_sessions")
    plant = (
        "insert into turnlog.own_sessions (id, name, native, is_ours) "
        "select id, 'x', 'x', true from generate_series(1, 99) as id"
    )
    assert sql(bound, "one", plant) == [99]  # among its own, whatever numbers others have
    assert sql(free, "one", "select count(*) from turnlog.own_sessions") == before
    assert len(sql(bound, "one", "select turnlog.own_forget(id) from turnlog.own_sessions")) == 99


def test_a_bound_role_asks_for_no_other_tenant(tenants: tuple[str, str, str]):
    with pytest.raises(Unsupported), ask(f"{tenants[2]}?tenant=one") as catalog:
        catalog.search("number")
