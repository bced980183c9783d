"""Forks point at their parent's prefix and copy nothing; purging a parent keeps what they need."""

import threading

import pytest

import turnlog
from tests.store.crashlab import home_at
from turnlog import AlreadyExists, Custom, Message, NotFound, Set, Text, Usage
from turnlog.store.files.disk import Disk


def texts(session):
    return [message.blocks[0].text for message in session.messages()]


@pytest.fixture
def talk(home):
    session = home.create(title="Fix it", agent="mine", labels={"team": "a"})
    session.user("one")
    session.set("k", "old")
    session.assistant("ONE", usage=Usage(input_tokens=10, output_tokens=1), model="m")
    session.user("two")
    session.set("k", "new")
    session.assistant("TWO", usage=Usage(input_tokens=20, output_tokens=2), model="m")
    return session


def test_a_fork_continues_where_its_parent_stands(talk, home, place):
    child = talk.fork(name="another idea")
    assert texts(child) == ["one", "ONE", "two", "TWO"]
    assert (child.head, child.title, child.agent, child.facts["k"]) == (talk.head, "Fix it", "mine", "new")
    child.user("child's")
    talk.user("parent's")
    assert texts(child)[-1] == "child's"
    assert texts(talk)[-1] == "parent's"
    assert texts(place.open().resume(child.id)) == ["one", "ONE", "two", "TWO", "child's"]


def test_a_fork_says_what_it_continues(talk, home):
    child = talk.fork(name="another idea")
    [info] = [info for info in home.sessions() if info.id == child.id]
    assert (info.fork.session, info.fork.seq, info.fork.name) == (talk.id, talk.seq, "another idea")
    assert info.fork.id == talk.find(info.fork.id).id
    assert info.parent is None


def test_every_inherited_entry_keeps_its_number_and_new_ones_go_on(talk):
    child = talk.fork()
    mine = child.user("child's")
    inherited = list(talk.entries())
    assert list(child.entries())[: len(inherited)] == inherited
    assert mine.seq > talk.seq
    assert list(child.entries(reverse=True)) == list(child.entries())[::-1]
    assert child.find(inherited[2].id) == inherited[2]
    assert child.find(mine.id) == mine
    assert list(child.entries(after=talk.seq))[-1] == mine


def test_a_fork_copies_nothing(files):
    with files.open() as home:
        session = home.create()
        for index in range(50):
            session.user("x" * 10_000 + str(index))
        child = session.fork()
        assert files.path(child).stat().st_size < 4096
        assert len(child.messages()) == 50


def test_a_fork_may_begin_at_any_entry(talk):
    two = talk.messages()[2]
    child = talk.fork(at=two)
    assert texts(child) == ["one", "ONE", "two"]
    assert child.get("k") == "old"
    assert child.user("other").parent == two.seq
    assert texts(talk.fork(at=two.seq)) == ["one", "ONE", "two"]


def test_a_fork_at_a_mark_has_the_facts_of_that_moment(talk):
    fact = next(entry for entry in talk.entries(kind="set") if entry.value == "new")
    child = talk.fork(at=fact)
    assert (texts(child), child.get("k")) == (["one", "ONE", "two"], "new")


def test_a_fork_at_the_first_line_is_empty(talk):
    child = talk.fork(at=1)
    assert (texts(child), child.facts) == ([], {"title": "Fix it"})
    assert child.user("fresh").parent == 0


@pytest.mark.parametrize("at", [0, -1, 999])
def test_a_fork_at_nothing_is_not_found(talk, home, at):
    with pytest.raises(NotFound):
        talk.fork(at=at)
    assert len(home.sessions()) == 1


def test_a_fork_may_have_its_own_id_title_labels_and_workspace(talk, home, tmp_path):
    child = talk.fork(id="mine", title="Other", labels={"x": "y"}, workspace=tmp_path, agent="else")
    assert (child.id, child.title, child.labels, child.agent) == ("mine", "Other", {"x": "y"}, "else")
    assert talk.title == "Fix it"
    with pytest.raises(AlreadyExists):
        talk.fork(id="mine")


def test_a_fork_of_a_rewound_session_continues_its_branch(talk):
    talk.rewind(turns=1)
    child = talk.fork()
    assert (texts(child), child.get("k")) == (["one", "ONE"], "old")


def test_a_fork_of_a_fork_sees_the_whole_line(talk, place):
    child = talk.fork()
    child.user("child's")
    child.set("k", "child's")
    grandchild = child.fork()
    grandchild.user("grandchild's")
    for session in (grandchild, place.open().resume(grandchild.id)):
        assert texts(session) == ["one", "ONE", "two", "TWO", "child's", "grandchild's"]
        assert session.get("k") == "child's"
        seqs = [entry.seq for entry in session.entries()]
        assert seqs == sorted(set(seqs))


def test_a_fork_of_a_fork_at_an_inherited_entry_builds_on_the_first(talk, home):
    child = talk.fork()
    child.user("child's")
    two = talk.messages()[2]
    grandchild = child.fork(at=two)
    [info] = [info for info in home.sessions() if info.id == grandchild.id]
    assert info.fork.session == talk.id
    assert (texts(grandchild), grandchild.get("k")) == (["one", "ONE", "two"], "old")


def test_a_fork_can_be_rewound_into_what_it_inherited(talk, place):
    child = talk.fork()
    child.user("child's")
    two = talk.messages()[2]
    child.rewind(to=two)
    assert (texts(child), child.head, child.get("k")) == (["one", "ONE", "two"], two.seq, "old")
    child.user("other")
    for session in (child, place.open().resume(child.id)):
        assert texts(session) == ["one", "ONE", "two", "other"]
    child.undo()
    assert (texts(child)[-1], child.get("k")) == ("child's", "new")
    child.rewind(turns=3)
    assert texts(child) == []
    assert texts(talk)[-1] == "TWO"


def test_a_fork_cannot_undo_what_its_parent_did(talk):
    talk.rewind(turns=1)
    with pytest.raises(NotFound):
        talk.fork().undo()


def test_what_the_parent_does_later_is_not_the_forks_business(talk):
    child = talk.fork()
    talk.set("k", "later")
    talk.rewind(to=0)
    assert (child.get("k"), len(child.messages())) == ("new", 4)


def test_a_compacted_context_is_inherited(talk, place):
    talk.compact("so far", keep=1)
    child = talk.fork()
    for session in (child, place.open().resume(child.id)):
        assert [message.blocks[0].text for message in session.context()] == ["so far", "TWO"]
    child.uncompact()
    assert len(child.context()) == 4
    assert len(talk.context()) == 2


def test_big_payloads_and_facts_are_inherited(talk, place):
    talk.user("x" * 100_000)
    talk.set("plan", "y" * 100_000)
    child = place.open().resume(talk.fork().id)
    assert texts(child)[-1] == "x" * 100_000
    assert child.get("plan") == "y" * 100_000


def test_usage_of_a_fork_tells_inherited_from_own(talk, place):
    child = talk.fork()
    child.assistant("mine", usage=Usage(input_tokens=5, output_tokens=5), model="m2")
    grandchild = child.fork()
    for session in (grandchild, place.open().resume(grandchild.id)):
        usage = session.usage()
        assert usage.own == Usage()
        assert usage.inherited == Usage(input_tokens=35, output_tokens=8)
        assert usage.total == Usage(input_tokens=35, output_tokens=8)
        assert usage.peak_input_tokens == 20
    assert child.usage().own == Usage(input_tokens=5, output_tokens=5)
    assert child.usage().models == {"m2": Usage(input_tokens=5, output_tokens=5)}
    assert child.usage().inherited == talk.usage().own
    everything = talk.usage().own + child.usage().own + grandchild.usage().own
    assert everything == Usage(input_tokens=35, output_tokens=8)


def test_usage_of_a_fork_ends_where_it_begins(talk):
    child = talk.fork(at=talk.messages()[2])
    assert child.usage().inherited == Usage(input_tokens=10, output_tokens=1)


def test_statistics_of_a_fork_include_what_it_inherited(talk, place):
    place.clock.tick(60_000)
    child = talk.fork()
    child.user("three")
    stats = child.stats()
    assert (stats.messages, stats.user_messages, stats.turns) == (5, 3, 3)
    assert stats.first_at == talk.stats().first_at
    assert stats.duration.total_seconds() == 60


def test_a_deleted_parent_is_still_read_by_its_forks(talk, home, place):
    child = talk.fork()
    home.delete(talk.id)
    assert texts(place.open().resume(child.id)) == ["one", "ONE", "two", "TWO"]
    grandchild = place.open().resume(child.id).fork(at=child.messages()[0])
    assert texts(grandchild) == ["one"]


@pytest.mark.parametrize("deleted_first", [False, True])
def test_purging_a_parent_keeps_what_its_forks_need(talk, home, place, deleted_first):
    early = talk.fork(at=talk.messages()[0])
    late = talk.fork()
    late.user("late's")
    of_late = late.fork()
    talk.user("only the parent's secret")
    if deleted_first:
        home.delete(talk.id)
    home.purge(talk.id)
    home.purge(late.id)
    fresh = place.open()
    assert texts(fresh.resume(early.id)) == ["one"]
    session = fresh.resume(of_late.id)
    assert texts(session) == ["one", "ONE", "two", "TWO", "late's"]
    session.rewind(to=session.messages()[1])
    session.user("on")
    assert texts(session) == ["one", "ONE", "on"]
    assert session.get("k") == "old"
    if place.face != "memory":
        assert b"only the parent's secret" not in place.all_bytes()
    with pytest.raises(NotFound):
        fresh.resume(talk.id)
    fresh.purge(of_late.id)
    fresh.purge(early.id)
    assert fresh.sessions() == []
    assert fresh.create(id=talk.id).id == talk.id


def test_a_fork_needs_its_parent_to_be_there_when_it_is_made(talk, home):
    home.purge(talk.id)
    with pytest.raises(NotFound):
        talk.fork()
    assert home.sessions() == []


def test_a_fork_of_a_long_parent_reads_what_it_needs(home):
    session = home.create()
    for index in range(300):
        session.append(Message(role="user", blocks=[Text(text=str(index))]), Set(key="n", value=index))
    child = session.fork(at=session.messages()[149])
    assert [message.blocks[0].text for message in child.messages(last=2)] == ["148", "149"]
    assert child.get("n") == 148
    child.rewind(to=session.messages()[9])
    assert (len(child.messages()), child.get("n")) == (10, 8)


def test_an_id_that_was_inherited_is_taken(home):
    session = home.create()
    session.append(Custom(kind="x.y"), id="mine")
    fork = session.fork()
    with pytest.raises(AlreadyExists, match="inherited"):
        fork.append(Custom(kind="x.y"), id="mine", once=True)


def test_the_name_of_a_branch_is_trimmed_and_blanks_are_none(s, home):
    s.user("hi")
    for name, kept in (("  try 2\t", "try 2"), ("  ", None), ("", None), (None, None)):
        child = s.fork(name=name)
        assert next(info for info in home.sessions() if info.id == child.id).fork.name == kept


def test_a_collection_takes_nothing_from_a_fork_that_is_being_made(tmp_path):
    """The state that a fork begins with may be a blob, which nothing refers to before the fork is there."""
    collecting = []

    class Meddling(Disk):
        def link(self, source, target):
            if target.endswith("fork.jsonl"):
                thread = threading.Thread(target=lambda: turnlog.open(tmp_path / "home").gc())
                thread.start()
                collecting.append(thread)
                thread.join(0.5)
            super().link(source, target)

    with home_at(str(tmp_path / "home"), Meddling()) as home:
        session = home.create(id="s")
        session.set("large", "x" * 100_000)
        session.fork(id="fork")
        for thread in collecting:
            thread.join()
    with turnlog.open(tmp_path / "home") as home:
        fork = home.read("fork")
        digests = {digest for entry in fork.entries() for digest in entry.blobs}
        assert fork.facts["large"] == "x" * 100_000
        assert collecting
        for digest in digests:
            assert home.get_blob(digest)
