"""A session that grew on both sides: a fork, never a loss, and always the same one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import turnlog
from tests.moving.scene import everything, ids_in, lines, make, outcomes, said
from turnlog import Compaction, Edit, Message, Note, Ref, Text, Usage
from turnlog.log.entry import AnyEntry, Start, Unknown, Writer
from turnlog.session import Home
from turnlog.session.interior import interior
from turnlog.store import derived
from turnlog.thread.history import History

PAIRS = [("files", "postgres"), ("postgres", "files"), ("files", "memory"), ("memory", "files")]


@pytest.fixture(params=PAIRS, ids=lambda pair: f"{pair[0]}-{pair[1]}")
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Home, Home]]:
    server = request.getfixturevalue("postgres") if "postgres" in request.param else None
    here, there = (make(kind, tmp_path, server) for kind in request.param)
    yield here, there
    here.close()
    there.close()


@pytest.fixture
def trio(tmp_path: Path) -> Iterator[list[Home]]:
    homes = [make("files", tmp_path) for _ in range(3)]
    yield homes
    for home in homes:
        home.close()


def shared(here: Home, there: Home, name: str = "s") -> None:
    """A session that both have."""
    with here.create(id=name, title="ours", labels={"team": "shop"}) as session:
        session.user("one")
        session.assistant("two")
    here.push(there, [name])


def say(home: Home, name: str, *texts: str) -> None:
    with home.resume(name) as session:
        for text in texts:
            session.user(text)


def forks_of(home: Home, name: str) -> list[str]:
    return [info.id for info in home.sessions() if info.fork is not None and info.fork.session == name]


def test_what_came_on_both_sides_is_on_both_sides_afterwards(pair: tuple[Home, Home]):
    here, there = pair
    shared(here, there)
    say(here, "s", "mine", "mine too")
    say(there, "s", "theirs")
    kept = lines(here, "s"), lines(there, "s")
    pushed, pulled = here.sync(there)
    assert [row.outcome for row in (*pushed, *pulled) if row.id == "s"] == ["forked", "forked"]
    assert (lines(here, "s"), lines(there, "s")) == kept
    [mine], [theirs] = forks_of(there, "s"), forks_of(here, "s")
    assert said(there, mine) == ["one", "two", "mine", "mine too"]
    assert said(here, theirs) == ["one", "two", "theirs"]
    assert {row.into for row in pushed if row.into} == {mine}
    with there.resume(mine) as session:
        assert (session.title, session.labels) == ("ours", {"team": "shop"})
    assert ids_in(here) == ids_in(there)
    before = everything(here), everything(there)
    pushed, pulled = here.sync(there)
    assert (everything(here), everything(there)) == before
    assert sum(row.entries for row in (*pushed, *pulled)) == 0


def test_the_fork_grows_with_what_it_came_from(pair: tuple[Home, Home]):
    here, there = pair
    shared(here, there)
    say(here, "s", "mine")
    say(there, "s", "theirs")
    here.sync(there)
    say(here, "s", "mine again")
    say(there, "s", "theirs again")
    here.sync(there)
    [mine], [theirs] = forks_of(there, "s"), forks_of(here, "s")
    assert said(there, mine) == ["one", "two", "mine", "mine again"]
    assert said(here, theirs) == ["one", "two", "theirs", "theirs again"]


def test_a_fork_that_was_gone_on_with_comes_back_as_such(pair: tuple[Home, Home]):
    here, there = pair
    shared(here, there)
    say(here, "s", "mine")
    say(there, "s", "theirs")
    here.sync(there)
    [mine] = forks_of(there, "s")
    say(there, mine, "mine, there")
    here.sync(there)
    assert said(here, mine) == ["one", "two", "mine", "mine, there"]
    assert lines(here, mine) == lines(there, mine)
    say(here, "s", "mine, here")
    here.sync(there)
    assert said(here, "s") == ["one", "two", "mine", "mine, here"]
    [second] = forks_of(there, mine)
    assert said(there, second) == ["one", "two", "mine", "mine, here"]
    assert ids_in(here) == ids_in(there)
    before = everything(here), everything(there)
    here.sync(there)
    assert (everything(here), everything(there)) == before


def pointed_at(home: Home, name: str) -> list[dict[str, str | None]]:
    """What every entry of a session names, by id instead of by number."""
    with home.resume(name) as session:
        entries = list(session.entries())
    ids = {entry.seq: entry.id for entry in entries}
    fields = ("parent", "to", "asof", "left", "undoes", "keep", "entry", "again")
    return [
        {"id": entry.id, **{field: ids.get(getattr(entry, field, None) or 0) for field in fields}}
        for entry in entries
        if not isinstance(entry, (Start, Writer))
    ]


def test_numbers_in_a_fork_point_where_they_pointed(pair: tuple[Home, Home]):
    here, there = pair
    shared(here, there)
    say(there, "s", "theirs")
    with here.resume("s") as session:
        first = session.user("first")
        session.assistant("answer", usage=Usage(input_tokens=5))
        session.append(Edit(entry=first.seq, blocks=[Text(text="FIRST")]))
        replaced = [Message(role="user", blocks=[Text(text="so far")]), Ref(2)]
        session.append(Compaction(replacement=replaced, keep=first.seq))
        session.append(Note(text="n"), Note(text="o"))
        session.set("mood", "good")
        session.user("x" * 100_000)
        session.rewind(to=first.seq)
        session.user("again")
        session.undo()
        mine = session.context(), session.branches(), session.stats(), session.facts, session.usage()
    here.push(there)
    [name] = forks_of(there, "s")
    assert pointed_at(there, name) == pointed_at(here, "s")
    with there.resume(name) as session:
        assert [turnlog.log.context.text_of(m.blocks) for m in session.context()] == [
            turnlog.log.context.text_of(m.blocks) for m in mine[0]
        ]
        assert len(session.branches()) == len(mine[1])
        assert (session.stats(), session.facts) == (mine[2], mine[3])
        assert session.usage().total == mine[4].total
        session.redo()
        with here.resume("s") as original:
            original.redo()
            assert [m.id for m in session.context()] == [m.id for m in original.context()]


def test_forks_of_what_became_a_fork_come_as_forks_of_that(pair: tuple[Home, Home]):
    here, there = pair
    shared(here, there)
    say(there, "s", "theirs")
    with here.resume("s") as session:
        mine = session.user("mine")
        session.user("more")
        with session.fork(mine.seq, id="child") as child:
            at = child.user("other")
            child.fork(at.seq, id="grandchild").user("deeper")
    rows = here.push(there)
    assert all(row.error is None for row in rows)
    texts = {name: said(there, name) for name in derived.ids(interior(there).store)}
    assert sorted(texts.values()) == sorted(
        [
            ["one", "two", "theirs"],
            ["one", "two", "mine", "more"],
            ["one", "two", "mine", "other"],
            ["one", "two", "mine", "other", "deeper"],
        ]
    )
    before = everything(there)
    assert {row.entries for row in here.push(there)} == {0}
    assert everything(there) == before
    say(here, "grandchild", "still deeper")
    here.push(there)
    assert ["one", "two", "mine", "other", "deeper", "still deeper"] in [
        said(there, name) for name in derived.ids(interior(there).store)
    ]
    here.pull(there)
    assert ids_in(here) == ids_in(there)
    assert sorted(said(here, name)[-1] for name in derived.ids(interior(here).store)) == [
        "more",
        "other",
        "still deeper",
        "theirs",
    ]


def test_two_sessions_that_only_have_the_same_id_are_left_as_they_are(pair: tuple[Home, Home]):
    here, there = pair
    with here.create(id="s") as mine, there.create(id="s") as theirs:
        mine.user("mine")
        mine.fork(id="fork").user("forked")
        theirs.user("theirs")
        theirs.note("more")
    here.create(id="other").close()
    before = everything(here), everything(there)
    for rows in here.sync(there):
        told = {row.id: row for row in rows}
        assert isinstance(told["s"].error, turnlog.AlreadyExists)
        assert told["s"].outcome == "failed" and "'s'" in str(told["s"].error) and told["s"].error.hint
        assert "fork" not in told or told["fork"].outcome == "failed"
    assert everything(here) == before[0]
    assert everything(there) == {**before[1], "other": lines(here, "other")}


def test_under_another_id_it_comes_with_its_forks(pair: tuple[Home, Home]):
    here, there = pair
    with here.create(id="s") as mine, there.create(id="s") as theirs:
        mine.user("mine")
        theirs.user("theirs")
        mine.fork(id="fork").user("forked")
    here.delete("s")
    here.restore("s", as_="mine")
    assert said(here, "mine") == ["mine"]
    assert said(here, "fork") == ["mine", "forked"]
    for rows in here.sync(there):
        assert [row.error for row in rows if row.error] == []
    for home in (here, there):
        assert {name: said(home, name) for name in derived.ids(interior(home).store)} == {
            "s": ["theirs"], "mine": ["mine"], "fork": ["mine", "forked"],
        }  # fmt: skip


def test_what_a_fork_builds_on_comes_though_another_session_is_called_the_same_there(pair: tuple[Home, Home]):
    """Purged here and kept aside: it is needed there, and never seen."""
    here, there = pair
    with here.create(id="s") as mine:
        mine.user("mine")
        mine.fork(id="fork").user("forked")
    here.purge("s")
    for home, texts in ((here, ["mine again"]), (there, ["theirs"])):
        with home.create(id="s") as session:
            for text in texts:
                session.user(text)
    there.delete("s")
    there.create(id="s").close()
    pushed, _ = here.sync(there)
    assert {row.id: row.outcome for row in pushed if row.outcome == "failed"} == {"s": "failed"}
    assert said(there, "fork") == ["mine", "forked"]
    assert said(here, "s") == ["mine again"]
    assert (said(there, "s"), [row.id for row in there.sessions(deleted=True)]) == ([], ["s"])
    with there.resume("fork") as session:
        session.user("more")
    there.push(here, ["fork"])
    assert said(here, "fork") == ["mine", "forked", "more"]


def test_facts_and_notes_merge_where_only_they_came(pair: tuple[Home, Home]):
    here, there = pair
    shared(here, there)
    with here.resume("s") as session:
        session.set("title", "renamed")
        session.append(Note(text="look here"))
        session.set("mood", "good")
    say(there, "s", "theirs")
    assert outcomes(here.push(there)) == {"s": "merged"}
    assert list(derived.ids(interior(there).store)) == ["s"]
    with there.resume("s") as session:
        assert (session.title, session.get("mood")) == ("renamed", "good")
    assert outcomes(here.push(there)) == {"s": "same"}
    here.pull(there)
    assert ids_in(here) == ids_in(there)
    assert "theirs" in [texts[-1] for texts in (said(here, name) for name in derived.ids(interior(here).store))]


@pytest.mark.parametrize("notes", [1, 40])
def test_two_copies_that_end_alike_because_the_same_was_merged_into_both_still_differ(trio: list[Home], notes: int):
    left, right, third = trio
    shared(left, right)
    left.push(third)
    say(left, "s", "only on the left")
    say(right, "s", "only on the right")
    with third.resume("s") as session:
        for number in range(notes):
            session.append(Note(text=f"of neither {number}"))
    third.push(left)
    third.push(right)
    assert lines(left, "s")[-1] == lines(right, "s")[-1]
    assert lines(left, "s") != lines(right, "s")
    made = ids_in(left) | ids_in(right)
    left.sync(right)
    assert made <= ids_in(left)
    assert made <= ids_in(right)
    assert not any(row.entries for rows in left.sync(right) for row in rows)


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_titles_the_later_one_stays_on_both_sides(pair: tuple[Home, Home], first: int):
    shared(*pair)
    for home in (pair[first], pair[1 - first]):
        with home.resume("s") as session:
            session.set("title", f"of {pair.index(home)}")
            session.set("tags", ["x"])
    for _ in range(3):
        pair[0].sync(pair[1])
    for home in pair:
        assert list(derived.ids(interior(home).store)) == ["s"]
        [info] = home.sessions()
        assert (info.title, info.tags) == (f"of {1 - first}", ["x"])
        with home.resume("s") as session:
            assert session.title == f"of {1 - first}"
    before = everything(pair[0]), everything(pair[1])
    pair[0].sync(pair[1])
    assert (everything(pair[0]), everything(pair[1])) == before
    assert ids_in(pair[0]) == ids_in(pair[1])


def test_three_homes_agree_on_what_a_fork_is_called(trio: list[Home]):
    a, b, c = trio
    shared(a, b)
    a.push(c)
    for index, home in enumerate(trio):
        say(home, "s", f"of {index}")
    a.sync(b)
    b.sync(c)
    c.sync(a)
    a.sync(b)
    assert ids_in(a) == ids_in(b) == ids_in(c)
    names = {name: [lines(home, name) for home in trio if name in set(derived.ids(interior(home).store))] for name in (
        *forks_of(a, "s"), *forks_of(b, "s"), *forks_of(c, "s")
    )}  # fmt: skip
    assert len(names) == 3
    for copies in names.values():
        assert all(copy == copies[0] for copy in copies)
    before = [everything(home) for home in trio]
    a.sync(b)
    b.sync(c)
    c.sync(a)
    assert [everything(home) for home in trio] == before


def test_a_kind_that_only_a_newer_version_can_renumber_is_refused_and_the_rest_goes_on(trio: list[Home]):
    here, there, _ = trio
    shared(here, there)
    shared(here, there, "t")
    with here.resume("s") as session:
        session.append(Unknown(kind="later", json='{"type":"later","critical":true}', critical=True))
    say(there, "s", "theirs")
    say(here, "t", "more")
    rows = {row.id: row for row in here.push(there)}
    assert isinstance(rows["s"].error, turnlog.Unsupported)
    assert rows["t"].outcome == "grown"


def test_numbers_that_lie_in_a_blob_are_changed_there(pair: tuple[Home, Home]):
    here, there = pair
    shared(here, there)
    say(there, "s", "theirs")
    with here.resume("s") as session:
        first = session.user("first")
        session.set("big", "y" * 100_000)
        session.user("second")
        session.rewind(to=first.seq)
        session.set("big", "z" * 100_000)
        session.undo()
        assert any(entry.type == "head" and entry.blobs for entry in session.entries())
    [row] = here.push(there)
    assert row.into is not None
    assert pointed_at(there, row.into) == pointed_at(here, "s")
    with there.resume(row.into) as session, here.resume("s") as original:
        assert session.get("big") == original.get("big") == "y" * 100_000
        session.redo()
        original.redo()
        assert session.facts == original.facts
        assert [m.id for m in session.context()] == [m.id for m in original.context()]
    there.gc()
    with there.resume(row.into) as session:
        assert session.facts == original.facts
    assert {row.entries for row in here.push(there)} != {0}  # the redo
    before = everything(there)
    here.push(there)
    assert everything(there) == before


def test_what_is_merged_into_a_long_session_is_looked_up_in_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Also in what a fork inherits, and in a dry run, whose log keeps no index of ids."""
    here, there = make("files", tmp_path), make("files", tmp_path)
    with here, there:
        shared(here, there)
        with here.resume("s") as session:
            session.append(*(Message(role="user", blocks=[Text(f"message {number}")]) for number in range(500)))
            fork = session.fork()
            fork.user("on its own")
        here.push(there)
        for home in (here, there):
            with home.resume(fork.id) as session:
                for number in range(20):
                    session.note(f"note {number}")
        read, lines_of = [0], History.lines

        def counted(history: History, after: int = 0, before: int | None = None) -> Iterator[AnyEntry]:
            for entry in lines_of(history, after, before):
                read[0] += 1
                yield entry

        monkeypatch.setattr(History, "lines", counted)
        for dry_run in (True, False):
            read[0] = 0
            [row] = [row for row in here.push(there, [fork.id], dry_run=dry_run) if row.id == fork.id]
            assert (row.outcome, row.entries) == ("merged", 20)
            assert read[0] < 2_500
