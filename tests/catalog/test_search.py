"""Search: the same as reading everything, whatever is asked; and what every hit carries."""

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import turnlog
from tests.catalog.plain import MINUTE, NOW, Doc, Plain, add, fill, naive, tables
from turnlog.catalog import Catalog
from turnlog.catalog.ask.listing import sessions_shown
from turnlog.catalog.ask.lookup import session_condition
from turnlog.catalog.ask.query import parse
from turnlog.catalog.ask.recall import recall
from turnlog.catalog.ask.search import search
from turnlog.catalog.index.conditions import Condition
from turnlog.catalog.index.engine import Engine
from turnlog.catalog.index.index import Index
from turnlog.catalog.index.sqlite.engine import SqliteEngine
from turnlog.catalog.index.sqlite.rowid import Rowids
from turnlog.catalog.index.where import where
from turnlog.errors import Invalid

WORDS = ["foo", "bar", "Foobar", "ba", "été", "Ete", "x1", "def", "self"]
SIGNS = [" ", " ", "\n    ", "_", ".", "(", ", ", '"', "-", "::", "🎉", "*"]
TEXTS = st.lists(st.sampled_from(WORDS + SIGNS), min_size=1, max_size=12).map("".join)
DOCS = st.builds(
    Doc,
    text=TEXTS,
    at=st.integers(0, 6).map(lambda ago: NOW - ago * 30 * MINUTE),
    role=st.sampled_from(["user", "assistant", "tool"]),
    tools=st.sampled_from([(), ("Bash",), ("Read", "Bash")]),
    files=st.sampled_from([(), ("src/app.py",), ("/home/ada/api/src/app.py", "README.md")]),
)
SESSIONS = st.lists(
    st.tuples(  # hypothesis would make up the other fields, too
        st.lists(DOCS, max_size=5).map(tuple),
        st.sampled_from(["codex", "claude-code"]),
        st.sampled_from(["/home/ada/api", "/home/ada/web"]),
        st.sampled_from(["Fix it", "100% of_it"]),
        st.sampled_from([(), ("urgent",), ("a", "b")]),
    ).map(lambda fields: Plain(*fields)),
    max_size=4,
)
PIECES = st.lists(st.sampled_from([*WORDS, "_", ".", "(", "::", "🎉"]), min_size=1, max_size=4).map("".join)
QUOTED = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(lambda words: f'"{" ".join(words)}"')
TERMS = st.one_of(
    st.sampled_from(WORDS),
    PIECES,
    QUOTED,
    st.sampled_from(WORDS).map(lambda word: word[:2] + "*"),
    st.sampled_from(WORDS).map(lambda word: f"*{word[1:]}*"),
    st.sampled_from(['"foo( bar"', '"self. def"', '"bar, foo"', "oo_b", "ar.f", "-ba", "-foo_", '-"foo bar"', "-*oo*"]),
)
FILTERS = st.sampled_from(
    [
        "agent:codex", "-agent:claude", "agent:codex,claude", "workspace:api", "role:user", "-role:tool,user",
        "tool:bash",
        "-tool:read", "since:1h", "until:90min", "-since:1h", "tag:urgent", "tag:b", "file:app.py", "file:src/app.py",
        "-file:README.md", "title:fix", "title:_", "title:%",
    ]
)  # fmt: skip
SIDES = st.tuples(st.lists(TERMS, min_size=0, max_size=3), st.lists(FILTERS, max_size=2)).map(
    lambda both: " ".join([*both[0], *both[1]])
)
QUERIES = SIDES | st.lists(SIDES.filter(bool), min_size=2, max_size=3).map(" OR ".join)


def entries(db: Index, query: str, **how: object) -> list[str]:
    return [hit.entry for hit in search([db], query=query, now_ms=NOW, **{"limit": 100, **how})]  # pyright: ignore


def meant(db: Index, query: str) -> list[int]:
    """The sessions that a query means."""
    sql, values = where(db.engine, session_condition(db, parse(query), now_ms=NOW))
    return [row[0] for row in db.engine.rows(f"SELECT id FROM sessions WHERE {sql} ORDER BY id", values)]


HIDING = ("is_hidden", "is_archived")


def listed(db: Index, query: str, *, everything: bool = False) -> list[int]:
    """The sessions that a list shows for a query."""
    sql, values = where(db.engine, sessions_shown(db, query, None, everything=everything, deleted=False))
    return [row[0] for row in db.engine.rows(f"SELECT id FROM sessions WHERE {sql} ORDER BY id", values)]


def understood(query: str) -> bool:
    try:
        parse(query)
    except Invalid:
        return False
    return True


# ── the same as reading everything ────────────────────────────────────────────────────────────────


@given(SESSIONS, QUERIES)
@settings(max_examples=150)
def test_a_search_finds_what_a_reader_of_everything_would(sessions: list[Plain], query: str):
    assume(understood(query))
    assert entries(fill(sessions), query) == naive(sessions, query)


@given(SESSIONS, QUERIES, st.integers(1, 3))
def test_pages_together_are_the_whole(sessions: list[Plain], query: str, limit: int):
    assume(understood(query))
    db = fill(sessions)
    pages: list[str] = []
    before = None
    while True:
        page = search([db], query=query, now_ms=NOW, limit=limit, before=before)
        pages += [hit.entry for hit in page]
        assert len(page) == limit or page.next is None
        assert not page.is_cut
        if page.next is None:
            break
        assert page.next == page[-1].cursor
        before = page.next
    assert pages == entries(db, query)


@given(SESSIONS, SESSIONS.filter(bool), QUERIES)
def test_another_session_never_hides_what_was_found(sessions: list[Plain], more: list[Plain], query: str):
    # Code that is nowhere from the beginning of a word on is looked for inside of words, until a better place comes.
    assume(understood(query) and not any(term.kind == "code" for term in parse(query).terms))
    db = fill(sessions)
    before = entries(db, query)
    rowids = Rowids(tables(), ())
    for number, session in enumerate(more, len(sessions) + 1):
        add(tables(), number, session, rowids)
    rowids.remember()
    assert set(before) <= set(entries(db, query))


@given(SESSIONS, QUERIES)
def test_the_sessions_of_a_query_are_those_with_a_hit(sessions: list[Plain], query: str):
    assume(understood(query) and "-role" not in query and "-tool" not in query and "-file" not in query)
    db = fill(sessions)
    found = set(meant(db, query))
    hit = {int(entry[1:].partition("-")[0]) for entry in naive(sessions, query)}
    assert found >= hit
    if not {"since", "until"} & set(query.replace("-", " ").replace(":", " ").split()):
        empty = {number for number, session in enumerate(sessions, 1) if not session.docs}
        assert found - empty == hit


@given(
    st.lists(st.sampled_from(['"', "'", "*", "(", ")", "AND", "OR", "NOT", "NEAR(", "^", ":", "-", "+", "{", "}", ",",
                                 "text", "words", " ", "foo", ";", "--", "%", "_", "\\", "?", "\x01", "[", "]"]),
                max_size=14).map("".join) | st.text(max_size=20))  # fmt: skip
@settings(max_examples=100)
def test_no_query_is_ever_taken_for_a_command_to_the_database(text: str):
    db = fill([Plain((Doc("foo AND bar; DROP TABLE docs"),))])
    for query in (text, f"agent:{text}", f'title:"{text}"', f"tool:{text}", f"file:{text}", f"workspace:x{text}"):
        try:
            search([db], query=query, now_ms=NOW)
            meant(db, query)
        except Invalid:
            continue
    assert entries(db, "foo") == ["e1-1"]


# ── what is asked ─────────────────────────────────────────────────────────────────────────────────


def found(query: str, *texts: str) -> list[int]:
    """The numbers of the texts that are found, the newest last."""
    db = fill([Plain(tuple(Doc(text, at=NOW - MINUTE * (len(texts) - n)) for n, text in enumerate(texts)))])
    return sorted(int(entry.partition("-")[2]) for entry in entries(db, query))


def test_words_in_any_order_and_case():
    assert found("Error retry", "retry on error", "error", "ERROR: Retry!") == [1, 3]


def test_code_as_it_stands():
    texts = ["self._x.append(1)", "self x append", "myself._x.append(1)", "SELF._X.APPEND(2)"]
    assert found("self._x.append(", *texts) == [1, 4]
    assert found("*self._x.append(", *texts) == [1, 3, 4]
    assert found("self._x.app", *texts) == [1, 4]


def test_code_from_the_middle_of_a_word_is_found_if_there_is_nothing_better():
    assert found("ession_la", "session_latest", "session latest") == [1]
    assert found("ession_la", "session_latest", "ession_lap") == [2]


def test_a_page_further_on_looks_for_the_same():
    db = fill([Plain(tuple(Doc(f"session_latest {n}", at=NOW - n * MINUTE) for n in range(5)))])
    first = search([db], query="ession_la", now_ms=NOW, limit=3)
    second = search([db], query="ession_la", now_ms=NOW, limit=3, before=first.next)
    assert [hit.entry for hit in first] == ["e1-1", "e1-2", "e1-3"]
    assert [hit.entry for hit in second] == ["e1-4", "e1-5"]
    db = fill([Plain((Doc("session_latest", at=NOW - MINUTE), Doc("ession_la", at=NOW)))])
    first = search([db], query="ession_la", now_ms=NOW, limit=1)
    assert [hit.entry for hit in first] == ["e1-2"] and first.next is None
    assert entries(db, "ession_la", before=first[0].cursor) == []


def test_scripts_without_blanks():
    assert found("テスト", "これはテストです", "別のもの") == [1]
    assert found("결과", "결과는 좋다") == [1]


def test_words_beside_letters_that_an_index_may_see_otherwise():
    assert found(".foo.ა.bar(", "x.foo.ა.bar(1)", "x.foo.bar(1)") == [1]
    assert found("foo\ue000bar.x", "foo\ue000bar.x") == [1]
    assert found("x.fooა", "x.fooა") == [1]


def test_signs_alone_are_found_by_reading():
    assert found("->", "a -> b", "a - > b") == [1]
    assert found("🎉", "done 🎉", "done") == [1]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("file:app.py", [1, 2, 3]),
        ("file:src/app.py", [1, 2]),
        ("file:/home/ada/api/src/app.py", [2]),
        ("file:src/", [1, 2]),
        ("file:*.md", [4]),
        ("file:README.?d", [4]),
        ("file:pp.py", []),
        ("file:100%_", [5]),
        ("-file:app.py", [4, 5, 6]),
        ("file:app.py,readme.md", [1, 2, 3, 4]),
    ],
)
def test_files(query: str, numbers: list[int]):
    files = ["src/app.py", "/home/ada/api/src/app.py", "lib/app.py", "docs/README.md", "100%_"]
    docs = [Doc("here", at=NOW - 9 * MINUTE + n, files=(path,)) for n, path in enumerate(files)]
    db = fill([Plain((*docs, Doc("here", at=NOW)))])
    assert sorted(int(entry[3:]) for entry in entries(db, f"here {query}")) == numbers
    assert sorted(int(entry[3:]) for entry in entries(db, query)) == numbers


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("agent:claude", [2]),
        ("agent:CLAUDE-code", [2]),
        ("agent:cod", []),
        ("agent:c*", [1, 2, 3]),
        ("workspace:api", [1]),
        ("workspace:ada/api", [1]),
        ("workspace:/home/ada", [1, 2]),
        ("workspace:/home/ada/", [1, 2]),
        ("workspace:/home/ad", []),
        ("workspace:über", [3]),
        ("workspace:ÜBER", [3]),
        ("workspace:ap*", [1]),
        ("tag:urgent", [1]),
        ("tag:urg*t", [1]),
        ("tag:urgent,later", [1, 2]),
        ("tag:urg", []),
        ("-tag:urgent", [2, 3]),
        ("model:sonnet", [1]),
        ("model:*o*", [1, 2]),
        ("title:login", [2]),
        ('title:"log?n p"', [2]),
        ("title:straße", [3]),
        ("cost:>1.50", [2]),
        ("cost:>=1.50", [1, 2]),
        ("cost:<=1.5 cost:>0.01", [1]),
        ("-cost:>1", [3]),
        ("session:s2", [2]),
        ("session:codex:s", [1]),
        ("session:s", [1, 2, 3]),
        ("session:=s", []),
        ("session:=s2", []),  # another agent's is called agent:id
        ("session:=codex:s1", [1]),
        ("session:=codex:s?", []),
        ("session:=s3", [3]),
        ("session:=handle3,=codex:s1", [1, 3]),
        ("-session:=handle3", [1, 2]),
        ("is:damaged", [1, 3]),
        ("is:fork", [2]),
        ("is:subagent", [1]),
        ("is:archived,fork", [2, 3]),
        ("-is:damaged", [2]),
        ("is:hidden", [1]),
        ("is:imported", [3]),
    ],
)
def test_what_is_known_of_sessions(query: str, numbers: list[int]):
    doc = (Doc("here"),)
    db = fill(
        [
            Plain(doc, "codex", "/home/ada/api", "First", ("urgent",), ("claude-sonnet-4-5",), cost=1_500_000,
                  more=(("damage", 2), ("parent", "p"), ("is_hidden", 1))),
            Plain(doc, "claude-code", "/home/ada/web", "The login page", ("later", "x"), ("gpt-4o", "o3"),
                  cost=2_000_000,
                  more=(("fork", "f"),)),
            Plain(doc, "cline", "/srv/Über", "Die Straße", is_ours=True,
                  more=(("problem", "unreadable"), ("is_archived", 1), ("copy_of", "x"))),
        ]
    )  # fmt: skip
    assert sorted(int(entry[1:2]) for entry in entries(db, f"here {query}")) == numbers
    assert meant(db, query) == numbers


def test_sessions_by_time_are_those_at_work_then():
    hour = 60 * MINUTE
    db = fill([Plain((Doc("old", at=NOW - 9 * hour), Doc("b", at=NOW - 5 * hour))), Plain((Doc("c", at=NOW - hour),))])

    assert meant(db, "since:2h") == [2]
    assert meant(db, "since:6h") == [1, 2]
    assert meant(db, "until:6h") == [1]
    assert meant(db, "until:6h since:8h") == [1]
    assert meant(db, "old since:8h") == []
    assert meant(db, "until:6h until:30min") == [1]
    assert meant(db, "since:2h since:6h") == [2]
    assert entries(db, "b since:6h until:30min until:4h") == ["e1-2"]
    assert entries(db, "c until:30min until:4h") == []


def test_none_of_its_entries_is_what_not_means_for_a_session():
    db = fill([Plain((Doc("a", tools=("Bash",)), Doc("b"))), Plain((Doc("a"),))])
    assert meant(db, "-tool:bash") == [2]


def test_hidden_sessions_are_searched_and_deleted_ones_are_not():
    doc = (Doc("here"),)
    db = fill([Plain(doc, more=((column, 1),)) for column in ("is_hidden", "is_archived", "is_deleted", "is_copied")])
    assert sorted(entries(db, "here")) == ["e1-1", "e2-1"]
    assert entries(db, "here -is:hidden") == ["e2-1"]


def test_one_side_of_an_or_shows_what_it_would_show_alone():
    doc = (Doc("here"),)
    db = fill([Plain(doc, tags=("a",)), *(Plain(doc, tags=("b",), more=((kind, 1),)) for kind in HIDING), Plain(doc)])
    queries = ("tag:a", "tag:b", "is:hidden", "is:archived tag:b", "is:archived tag:a", "here")
    alone = {query: listed(db, query) for query in queries}
    assert [len(rows) for rows in alone.values()] == [1, 0, 1, 1, 0, 2]
    for one, other in permutations(alone, 2):
        assert set(listed(db, f"{one} OR {other}")) == {*alone[one], *alone[other]}
    assert len(listed(db, "is:hidden OR here", everything=True)) == 4


def test_too_much_to_read_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(SqliteEngine, "patience", 40)
    db = fill([Plain(tuple(Doc(f"session_latest {n}", at=NOW - n * MINUTE) for n in range(10)))])
    seen: list[str] = []
    before, cuts = None, 0
    while True:
        page = search([db], query="*latest*", now_ms=NOW, limit=100, before=before)
        seen += [hit.entry for hit in page]
        cuts += page.is_cut
        if page.next is None:
            break
        before = page.next
    assert seen == [f"e1-{n}" for n in range(1, 11)]
    assert cuts == 3
    with pytest.raises(Invalid, match="too much text"):
        meant(db, "*nowhere*")


# ── what a hit carries ────────────────────────────────────────────────────────────────────────────


def test_a_hit():
    docs = (
        Doc("an older needle", at=NOW - 2 * MINUTE),
        Doc("the needle", at=NOW - MINUTE, role="tool", tools=("Bash",)),
    )
    [ours, older] = search([fill([Plain(docs, is_ours=True)])], query="needle", now_ms=NOW)
    assert ours.card.name == "handle1"
    assert (ours.entry, ours.seq, ours.role, ours.tool) == ("e1-2", 2, "tool", "Bash")
    assert ours.at == datetime.fromtimestamp((NOW - MINUTE) / 1000, UTC)
    assert [ours.snippet[start:end] for start, end in ours.marks] == ["needle"]
    assert ours.resume == ("turnlog", "resume", "handle1")
    assert older.resume == ("turnlog", "fork", "handle1", "--at", "1")
    [theirs, _] = search([fill([Plain(docs)])], query="needle", now_ms=NOW)
    assert theirs.seq == 0
    assert theirs.resume == ("turnlog", "resume", "codex:s1")


def test_a_page_has_at_least_one_hit():
    with pytest.raises(Invalid, match="a page of 0"):
        search([fill([])], query="x", now_ms=NOW, limit=0)


def test_a_folder_whose_name_has_its_accents_apart_is_searched(tmp_path: Path):
    apart = tmp_path / "Cafe\u0301"
    apart.mkdir()
    with turnlog.open(tmp_path / "home", checkpoints=False) as home, home.create(workspace=apart) as session:
        session.user("a needle")
        with Catalog(home) as catalog:
            assert len(catalog.cards(f"workspace:{apart}")) == 1
            assert len(catalog.search(f"needle workspace:={apart}")) == 1


def test_every_file_of_a_session_is_behind_a_commit(monkeypatch: pytest.MonkeyPatch):
    copies = [Plain(more=(("native", "same"), ("copy_of", "ours"))) for _ in range(2)]
    inner = [Plain(more=(("native", "inner"), ("parent", "same"))) for _ in range(2)]
    monkeypatch.setattr("turnlog.blame.commit.sessions_behind", lambda store, revisions: ["ours"])
    with turnlog.open("memory:") as home:
        index = Index(fill([*copies, *inner]).engine, lambda: home)
        assert sorted(index.behind_commits("HEAD")) == [1, 2, 3, 4]


@pytest.mark.parametrize("without", ["-foo.bar", '-"foo bar"', "-*oo.b*", "-foo"])
def test_near_matches_lack_what_must_not_be_there(without: str):
    index = fill([Plain((Doc("zebra foo.bar"),)), Plain((Doc("zebra"),)), Plain((Doc("quagga"),))])
    page = recall([index], f"zebra quagga {without}", limit=9)
    assert [place.hit.entry for place in page.places] == ["e3-1", "e2-1"]


class _Meanwhile(SqliteEngine):
    """Another process removes the first session before a statement that has this in it."""

    def __init__(self, engine: Engine, before: str) -> None:
        assert isinstance(engine, SqliteEngine)
        super().__init__(engine.db)
        self._before = before

    def rows(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        if self._before in sql:
            self.db.execute("DELETE FROM sessions WHERE id = 1")
        return super().rows(sql, values)


def test_a_session_that_is_removed_between_two_statements_is_left_out():
    sessions = [Plain((Doc("zebra"),), title=title, tags=("x",)) for title in ("gone", "there")]
    rows = Index(_Meanwhile(fill(sessions).engine, "SELECT id, ending")).listing(Condition())
    assert [row.title for row in rows] == ["there (#x)"]
    hits = search([Index(_Meanwhile(fill(sessions).engine, "max(step)"))], query="zebra", now_ms=NOW)
    assert [hit.card.title for hit in hits] == ["there"]


@pytest.mark.parametrize(
    ("query", "costs"),
    [("cost:>=3", [3_000_000]), ("cost:>3", []), ("cost:<3", [1_000_000]), ("-cost:>=3", [1_000_000])],
)
def test_what_its_subagents_cost_counts_as_in_a_listing(query: str, costs: list[int]):
    index = fill([Plain(cost=1_000_000, more=(("subagents", "1 0 0 0 2 0 2000000"),)), Plain(cost=1_000_000)])
    chosen = sessions_shown(index, query, None, everything=False, deleted=False)
    assert [row.cost_micros for row in index.listing(chosen)] == costs


def test_many_stars_are_one_and_take_no_time():
    index = fill([Plain(title="é" + "a" * 150)])
    for query, count in ((f"title:é{'*' * 30}b", 0), (f"title:é{'*' * 30}a", 1)):
        assert index.count(sessions_shown(index, query, None, everything=False, deleted=False)) == count
