"""How sessions of other agents become sessions here: each record once, and nothing taken away."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest

import turnlog
from tests.faces import location
from turnlog import Compaction, Edit, Message, Set, Spent, Text, Usage
from turnlog.catalog import Catalog
from turnlog.exchange.importing.sessionimport import import_source
from turnlog.formats import Forked, Jump, Problem, Reading, Record, SessionHeader, Source, Spawn
from turnlog.session.interior import interior

SOURCE = Source("test", "somewhere/s.json")
DAY = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@pytest.fixture
def home():
    with turnlog.open("memory:") as home:
        yield home


def said(role, text, **fields):
    return Message(role=role, blocks=[Text(text=text)], **fields)


def plain(*texts):
    """Records without keys: user and assistant in turn."""
    return [Record(entry=said("user" if i % 2 == 0 else "assistant", text)) for i, text in enumerate(texts)]


def keyed(*pairs):
    return [step if isinstance(step, Jump) else Record(key=step[0], entry=said("user", step[1])) for step in pairs]


def read(*steps, id="one", facts=None, totals=None, problems=(), **header):
    return Reading(
        header=SessionHeader(id=id, **header), steps=iter(steps), facts=facts or {}, totals=totals or {},
        problems=list(problems),
    )  # fmt: skip


def take(home, reading, source=SOURCE):
    return import_source(interior(home).creator, source, reading)


def texts(session):
    return [message.blocks[0].text for message in session.messages()]


def seen(session):
    return [message.blocks[0].text for message in session.context()]


def test_a_session_arrives_with_its_times_and_its_facts(home):
    records = [Record(entry=said("user", "hi", at=DAY)), Record(entry=said("assistant", "yes", at=DAY + timedelta(1)))]
    done = take(home, read(*records, facts={"model": "m"}, title="t", created=DAY, workspace="/w"))
    assert (done.id, done.added, done.problems) == ("test-one", 4, [])
    session = home.resume("test-one")
    assert texts(session) == ["hi", "yes"]
    assert [message.at for message in session.messages()] == [DAY, DAY + timedelta(1)]
    assert all(message.clock is None for message in session.messages())
    assert (session.title, session.workspace, session.get("model"), session.agent) == ("t", "/w", "m", "test")


@pytest.mark.parametrize("steps", [plain("a", "b", "a", "b"), keyed(("1", "a"), Jump(to="", key="m"), ("2", "b"))])
def test_importing_twice_adds_nothing(home, steps):
    totals = {"m": Usage(input_tokens=5)}
    take(home, read(*steps, totals=totals, facts={"x": 1}, title="t"))
    before = list(home.resume("test-one").entries())
    done = take(home, read(*steps, totals=totals, facts={"x": 1}, title="t"))
    assert done.added == 0
    assert list(home.resume("test-one").entries()) == before


def test_a_source_that_grew_appends_only_what_is_new(home):
    take(home, read(*plain("a", "b"), totals={"": Usage(input_tokens=5)}))
    done = take(home, read(*plain("a", "b", "c", "a"), totals={"": Usage(input_tokens=8)}))
    session = home.resume("test-one")
    assert done.added == 3
    assert texts(session) == ["a", "b", "c", "a"]
    assert [entry.usage.input_tokens for entry in session.entries(kind=Spent)] == [5, 3]


def test_a_source_that_replaced_its_beginning_by_a_summary_is_a_compaction_here(home):
    take(home, read(*plain("a", "b", "c", "d")))
    take(home, read(*plain("sum", "b2"), *plain("c", "d", "e")))
    session = home.resume("test-one")
    assert seen(session) == ["sum", "b2", "c", "d", "e"]
    assert texts(session) == ["a", "b", "c", "d", "e"]
    again = take(home, read(*plain("sum", "b2"), *plain("c", "d", "e", "f")))
    assert again.added == 1
    assert seen(home.resume("test-one"))[-1] == "f"


def test_a_source_that_only_lost_its_beginning_loses_nothing_here(home):
    take(home, read(*plain("a", "b", "c", "d")))
    take(home, read(*plain("c", "d", "e")))
    session = home.resume("test-one")
    assert texts(session) == ["a", "b", "c", "d", "e"]
    assert seen(session) == ["c", "d", "e"]


def test_a_compaction_record_of_the_source_keeps_what_it_still_has(home):
    def compacted(text):
        return Record(entry=Compaction(replacement=[said("system", text)]))

    take(home, read(*plain("a", "b", "c", "d")))
    take(home, read(compacted("s1"), *plain("c", "d", "e")))
    take(home, read(compacted("s2"), *plain("e", "f")))
    session = home.resume("test-one")
    assert texts(session) == ["a", "b", "c", "d", "e", "f"]
    assert [message.blocks[0].text for message in session.context()][-2:] == ["e", "f"]
    assert "s2" in session.context().system
    assert take(home, read(compacted("s2"), *plain("e", "f"))).added == 0


def test_a_source_that_changed_its_past_is_a_branch_here(home):
    take(home, read(*plain("a", "b", "c", "d")))
    take(home, read(*plain("a", "b", "x")))
    session = home.resume("test-one")
    assert texts(session) == ["a", "b", "x"]
    assert len(session.branches()) == 2
    assert take(home, read(*plain("a", "b", "x"))).added == 0


def test_branches_of_a_source_with_keys(home):
    steps = keyed(("1", "a"), ("2", "b"), Jump(to="1"), ("3", "c"), Jump(to="2", key="leaf", why="rewind"))
    take(home, read(*steps))
    session = home.resume("test-one")
    assert texts(session) == ["a", "b"]
    assert {branch.messages for branch in session.branches()} == {2}
    take(home, read(*steps, *keyed(("4", "d"))))
    assert texts(home.resume("test-one")) == ["a", "b", "d"]


def test_a_record_names_another_by_its_key(home):
    compaction = Record(key="3", entry=Compaction(replacement=[said("user", "sum")]), names={"keep": "2"})
    take(home, read(*keyed(("1", "a"), ("2", "b")), compaction))
    assert seen(home.resume("test-one")) == ["sum", "b"]
    lost = Record(key="4", entry=Compaction(replacement=[said("user", "x")]), names={"keep": "nowhere"})
    done = take(home, read(*keyed(("1", "a"), ("2", "b")), compaction, lost))
    assert "nowhere" in done.problems[0].what


@pytest.mark.parametrize("make", [plain, lambda *t: keyed(*((str(i), x) for i, x in enumerate(t)))])
def test_what_went_on_both_here_and_there_is_kept_on_both_branches(home, make):
    take(home, read(*make("a", "b")))
    with home.resume("test-one") as session:
        session.user("mine")
    done = take(home, read(*make("a", "b", "theirs")))
    session = home.resume("test-one")
    assert texts(session) == ["a", "b", "mine"]
    assert "both" in done.problems[0].what
    assert {"mine", "theirs"} <= {entry.blocks[0].text for entry in session.entries(kind="message")}
    take(home, read(*make("a", "b", "theirs", "more")))
    session = home.resume("test-one")
    assert texts(session) == ["a", "b", "mine"]
    assert [entry.parent for entry in session.entries(kind="message") if entry.blocks[0].text == "more"] == [
        next(entry.seq for entry in session.entries(kind="message") if entry.blocks[0].text == "theirs")
    ]


def test_totals_that_went_down_take_nothing_back(home):
    take(home, read(*plain("a"), totals={"": Usage(input_tokens=5, cost_micros=7)}))
    done = take(home, read(*plain("a"), totals={"": Usage(input_tokens=3, cost_micros=9)}))
    assert "smaller" in done.problems[0].what
    own = home.resume("test-one").usage().own
    assert (own.input_tokens, own.cost_micros) == (5, 9)


def test_a_title_given_here_stays(home):
    take(home, read(*plain("a"), title="theirs"))
    take(home, read(*plain("a"), title="theirs 2"))
    session = home.resume("test-one")
    assert session.title == "theirs 2"
    session.set("title", "mine")
    session.close()
    take(home, read(*plain("a"), title="theirs 3"))
    assert home.resume("test-one").title == "mine"


def test_a_fork_shares_what_it_has_in_common_and_counts_it_once(home):
    spent = Usage(input_tokens=10)
    both = [Record(entry=said("user", "a")), Record(entry=said("assistant", "b", usage=spent))]
    take(home, read(*both, *plain("c"), id="one"))
    take(home, read(*both, *plain("d"), id="two", fork=Forked("one", "name")))
    fork = home.resume("test-two")
    assert texts(fork) == ["a", "b", "d"]
    assert fork.usage().own == Usage()
    assert fork.usage().inherited == spent
    assert sum((home.resume(name).usage().own for name in ("test-one", "test-two")), Usage()) == spent
    assert take(home, read(*both, *plain("d"), id="two", fork=Forked("one", "name"))).added == 0


def test_a_fork_whose_parent_is_not_here_says_so(home):
    take(home, read(*plain("a"), id="two", fork=Forked("gone")))
    assert home.resume("test-two").labels == {"forked_from": "gone"}


def test_a_subagent_is_known_to_its_parent(home):
    take(home, read(*plain("a"), id="one"))
    child = read(*plain("b"), id="two", spawned=Spawn("one", "call-1", "tester"), totals={"": Usage(output_tokens=3)})
    take(home, child)
    parent = home.resume("test-one")
    assert [row.id for row in parent.children()] == ["test-two"]
    assert parent.usage().subagents.output_tokens == 3


def test_two_sessions_with_one_id_are_two_sessions(home):
    first = take(home, read(*plain("a"), identity="made at noon"))
    second = take(home, read(*plain("b"), identity="made at night"))
    assert first.id != second.id
    assert take(home, read(*plain("b"), identity="made at night")).id == second.id
    assert texts(home.resume(first.id)) == ["a"]


def test_a_session_of_our_own_with_that_id_is_left_alone(home):
    home.create(id="test-one").user("mine")
    done = take(home, read(*plain("a")))
    assert done.id != "test-one"
    assert texts(home.resume("test-one")) == ["mine"]


def test_a_session_deleted_here_does_not_come_back_by_itself(home):
    take(home, read(*plain("a")))
    home.delete("test-one")
    done = take(home, read(*plain("a", "b")))
    assert done.added == 0
    assert "restore" in done.problems[0].what
    assert [row.id for row in home.sessions()] == []


def test_a_record_that_cannot_be_kept_costs_only_itself(home):
    bad = Record(entry=Message(role="user", blocks=[Text(text="x")], meta={"n": float("nan")}))
    done = take(home, read(*plain("a"), bad, *plain("b")))
    assert texts(home.resume("test-one")) == ["a", "b"]
    assert "nan" in done.problems[0].what


def test_problems_of_the_source_are_told_in_the_log_as_well(home):
    take(home, read(*plain("a"), problems=[Problem("line 3 is torn", offset=7)]))
    notes = [entry for entry in home.resume("test-one").entries(kind="note")]
    assert "1 problem" in notes[0].text
    assert notes[0].data == [{"what": "line 3 is torn", "offset": 7}]


def test_no_credential_of_a_source_reaches_the_log(home):
    facts = {"llm": {"api_key": "sk-secret-1234567890"}}
    done = take(home, read(*plain("a"), facts=facts, origin={"api_key": "sk-other"}))
    assert "llm.api_key" in done.problems[0].what
    session = home.resume("test-one")
    assert "sk-" not in repr(list(session.entries()))
    assert [entry.key for entry in session.entries(kind=Set)] == ["llm"]


def test_a_long_source_arrives_in_order(home):
    many = plain(*(f"m{i % 7}" for i in range(1000)))
    assert take(home, read(*many)).added == 1000
    assert texts(home.resume("test-one")) == [f"m{i % 7}" for i in range(1000)]
    assert take(home, read(*many, *plain("end"))).added == 1


@pytest.mark.parametrize("make", [plain, lambda *t: keyed(*((str(i), x) for i, x in enumerate(t)))])
def test_what_was_said_here_and_written_there_comes_back_as_itself(home, make):
    take(home, read(*make("a", "b"), totals={"": Usage(input_tokens=5)}))
    with home.resume("test-one") as session:
        session.user("mine")
        session.assistant("answer", usage=Usage(input_tokens=7))

    def grown(*more):
        texts = ["mine", "answer", *more]
        roles = ["user", "assistant", "user", "assistant"]
        added = [Record(entry=said(role, text), key=None) for role, text in zip(roles, texts, strict=False)]
        if make is not plain:
            added = [Record(entry=r.entry, key=f"new {i}") for i, r in enumerate(added)]
        return read(*make("a", "b"), *added, totals={"": Usage(input_tokens=12 + 3 * len(more))})

    assert take(home, grown()).added == 0
    done = take(home, grown("theirs"))
    session = home.resume("test-one")
    assert texts(session) == ["a", "b", "mine", "answer", "theirs"]
    assert session.usage().own.input_tokens == 15
    assert (done.added, len(session.branches())) == (2, 1)
    assert take(home, grown("theirs")).added == 0
    assert take(home, grown("theirs", "more")).added == 2
    assert texts(home.resume("test-one"))[-2:] == ["theirs", "more"]


def test_a_record_that_cannot_be_kept_moves_nothing(home):
    bad = Record(key="9", entry=Message(role="user", blocks=[Text(text="x")], meta={"n": float("inf")}))
    steps = [*keyed(("1", "a"), ("2", "b"), Jump(to="1")), bad]
    assert "inf" in take(home, read(*steps)).problems[0].what
    before = home.resume("test-one").seq
    assert take(home, read(*steps)).added == 0
    assert home.resume("test-one").seq == before


# ── when it was ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=["memory", "files", "postgres"])
def any_home(request, tmp_path):
    with turnlog.open(location(request, tmp_path / "home")) as home:
        yield home


@pytest.mark.parametrize("count", [2, 600])
def test_what_is_brought_in_is_as_old_as_its_conversation(any_home, count):
    last = DAY + timedelta(seconds=count - 1)
    records = [
        Record(key=str(i), entry=said("user" if i % 2 == 0 else "assistant", f"{i}", at=DAY + timedelta(seconds=i)))
        for i in range(count)
    ]
    header = {"title": "old", "created": DAY, "workspace": "/w"}
    told = {"facts": {"model": "m", "tags": ["t"], "archived": False}, "totals": {"m": Usage(input_tokens=1)}}
    take(any_home, read(*records, problems=[Problem("x")], **told, **header))
    take(any_home, read(*records, **{**told, "facts": {"tags": ["u"]}}, **{**header, "title": "renamed"}))
    take(any_home, read(*keyed(("c", "child")), id="two", created=DAY, spawned=Spawn("one", None, "helper")))
    newer = any_home.create()
    newer.user("of today")
    assert any_home.sessions()[0].id == any_home.find("latest") == newer.id
    info = next(info for info in any_home.sessions() if info.id == "test-one")
    assert info.title == "renamed"
    assert info.updated_at == last == any_home.read("test-one").stats().last_at
    assert {entry.at for entry in any_home.read("test-one").entries() if entry.at > last} == set()
    if any_home.backend == "memory":
        return  # no catalog knows of it
    with Catalog(any_home, agents=False) as catalog:
        card = next(card for card in catalog.cards(everything=True) if card.id == "test-one")
        assert (card.updated_at, card.state) == (last, "idle")


@pytest.mark.parametrize("untimed", [0, 1, 2])
def test_a_record_without_a_time_among_others_makes_nothing_as_new_as_the_file(home, tmp_path, untimed):
    path = tmp_path / "s.json"
    path.write_text("")  # just copied here
    times = [DAY + timedelta(seconds=i) for i in range(4)]
    times.insert(untimed, None)
    records = [Record(key=str(i), entry=said("user", f"{i}", at=at)) for i, at in enumerate(times)]
    take(home, read(*records, created=DAY), Source("test", str(path)))
    session = home.read(home.sessions()[0].id)
    assert session.stats().last_at == DAY + timedelta(seconds=3)
    assert [message.blocks[0].text for message in session.messages()] == list("01234")


def test_what_an_import_of_before_added_with_its_own_time_makes_nothing_new(tmp_path):
    with turnlog.open(tmp_path / "home") as home:
        take(home, read(Record(key="a", entry=said("user", "hi", at=DAY)), created=DAY))
        for key, value in (("title", "given while importing"), ("tags", ["t"])):
            home.resume("test-one").set(key, value)
        kept = home.read("test-one").messages()[0]
        home.resume("test-one").append(Edit(entry=kept.seq, blocks=None, origin=kept.origin))
        with Catalog(home, agents=False) as catalog:
            assert catalog.find("test-one").updated_at == DAY
            assert catalog.cards("since:1d") == []
            home.resume("test-one").user("it goes on here")
            catalog.sync()
            assert [card.id for card in catalog.cards("since:1d")] == ["test-one"]


def test_what_says_no_time_is_as_old_as_its_file(home, tmp_path):
    path = tmp_path / "s.json"
    path.write_text("")
    os.utime(path, (DAY.timestamp(), DAY.timestamp()))
    source = Source("test", str(path))
    take(home, read(*plain("a", "b"), title="t"), source)
    assert home.sessions()[0].updated_at == DAY
    os.utime(path, (DAY.timestamp() + 60, DAY.timestamp() + 60))
    take(home, read(*plain("a", "b", "c"), title="t"), source)
    assert home.sessions()[0].updated_at == DAY + timedelta(seconds=60)


@pytest.mark.parametrize("is_purged", [False, True])
def test_what_was_erased_does_not_come_back_with_the_next_import(home, is_purged):
    answer = Message(role="assistant", blocks=[Text(text="the secret"), Text(text="and more")])
    steps = [*keyed(("a", "one"), ("b", "the secret")), Record(entry=answer, key="c"), *plain("the secret, too")]
    take(home, read(*steps))
    session = home.resume(home.sessions()[0].id)
    for entry in list(session.entries()):
        if "secret" in str(entry):
            session.erase(entry)
    if is_purged:
        home.purge(session.id)
    take(home, read(*steps))
    (row,) = home.sessions()
    again = home.read(row.id)
    assert texts(again) == ["one", "[erased]", "[erased]", "[erased]"]
    assert "secret" not in str(list(again.entries()))
