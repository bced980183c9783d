"""What was erased on one side: erased on the other, never back, and no reason for a fork."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.moving.scene import make
from turnlog import Message, Text
from turnlog.session import Home
from turnlog.session.interior import interior
from turnlog.store import derived

SECRET = "ZQ-only-once"
LONG = SECRET + " in a blob " + "x" * 70_000
PAIRS = [("files", "postgres"), ("postgres", "files"), ("files", "memory")]


@pytest.fixture(params=PAIRS, ids=lambda pair: f"{pair[0]}-{pair[1]}")
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Home, Home]]:
    server = request.getfixturevalue("postgres") if "postgres" in request.param else None
    here, there = (make(kind, tmp_path, server) for kind in request.param)
    yield here, there
    here.close()
    there.close()


def shared(here: Home, there: Home) -> Message:
    """A session that both have; the entry with the secret."""
    with here.create(id="s") as session:
        session.user("before")
        entry = session.user(LONG)
        session.user("after")
    here.push(there)
    return entry


def texts(home: Home) -> list[str]:
    """Everything that anybody said, in whatever log there is."""
    found = []
    for log in derived.all_logs(interior(home).store):
        for entry in log.read():
            if isinstance(entry, Message):
                found += [block.text for block in entry.blocks if isinstance(block, Text)]
        log.close()
    return found


def has_secret(home: Home) -> bool:
    return any(SECRET in text for text in texts(home)) or home.gc(dry_run=True).blobs > 0


def erase(home: Home, name: str, id: str) -> None:
    with home.resume(name) as session:
        entry = session.find(id)
        assert entry is not None
        assert session.erase(entry, reason="a key", by="ada").entries


def test_pushed_it_is_erased_there_with_who_and_why(pair: tuple[Home, Home]):
    here, there = pair
    entry = shared(here, there)
    erase(here, "s", entry.id)
    [told] = here.push(there, dry_run=True)
    assert (told.outcome, told.erased, told.entries) == ("erased", 1, 0)
    assert has_secret(there)
    [row] = here.push(there)
    assert (row.outcome, row.erased) == ("erased", 1)
    assert not has_secret(there)
    [known] = there.read("s").erasures()
    assert (known.seq, known.by, known.why) == (entry.seq, "ada", "a key")
    assert [one.id for one in there.sessions()] == ["s"]
    [row] = here.push(there)
    assert (row.outcome, row.erased) == ("same", 0)


def test_erased_there_it_does_not_come_back_and_a_pull_brings_it(pair: tuple[Home, Home]):
    here, there = pair
    entry = shared(here, there)
    erase(there, "s", entry.id)
    here.resume("s").user("and on")
    [row] = here.push(there)
    assert (row.outcome, row.entries) == ("grown", 1) or row.entries <= 2
    assert not has_secret(there)
    assert has_secret(here)
    here.pull(there)
    assert not has_secret(here)
    assert [one.id for one in here.sessions()] == [one.id for one in there.sessions()] == ["s"]


def test_a_new_copy_says_who_and_why(pair: tuple[Home, Home]):
    here, there = pair
    with here.create(id="s") as session:
        entry = session.user(SECRET)
        session.erase(entry, reason="a key")
    [row] = here.push(there)
    assert row.outcome == "new"
    assert [one.why for one in there.read("s").erasures()] == ["a key"]
    assert there.read("s").find(entry.id).void


def test_what_was_purged_there_does_not_come_back_with_it(pair: tuple[Home, Home]):
    here, there = pair
    entry = shared(here, there)
    erase(there, "s", entry.id)
    there.purge("s")
    here.push(there)
    assert texts(there) == ["before", "[erased]", "after"]
    assert not has_secret(there)


def test_both_went_on_and_both_erased(pair: tuple[Home, Home]):
    here, there = pair
    entry = shared(here, there)
    with here.resume("s") as session:
        mine = session.user(f"{SECRET} mine")
    with there.resume("s") as session:
        theirs = session.user(f"{SECRET} theirs")
    here.sync(there)
    assert len(here.sessions()) == len(there.sessions()) == 2
    erase(here, "s", entry.id)
    erase(here, "s", mine.id)  # over there it begins a fork, which is named after it
    erase(there, "s", theirs.id)
    for _ in range(2):
        here.sync(there)
    assert not has_secret(here) and not has_secret(there)
    assert len(here.sessions()) == len(there.sessions()) == 2
    assert {row.outcome for rows in here.sync(there) for row in rows} == {"same"}


def test_erased_in_the_fork_that_a_transfer_made(pair: tuple[Home, Home]):
    here, there = pair
    shared(here, there)
    with here.resume("s") as session:
        mine = session.user(f"{SECRET} mine")
        session.user("more of mine")
    there.resume("s").user("theirs")
    here.push(there)
    [fork] = [row.id for row in there.sessions() if row.fork is not None]
    erase(there, fork, mine.id)
    here.pull(there)
    here.sync(there)
    assert f"{SECRET} mine" not in [*texts(here), *texts(there)]
    assert {row.id for row in there.sessions()} == {"s", fork}
    assert len(here.sessions()) == 2


def test_what_was_merged_there_has_another_number(pair: tuple[Home, Home]):
    here, there = pair
    shared(here, there)
    there.resume("s").user("theirs")
    with here.resume("s") as session:
        note = session.note("merged-only-once")
    here.push(there)
    erase(here, "s", note.id)
    here.push(there)
    assert "merged-only-once" not in str([list(log.read()) for log in derived.all_logs(interior(there).store)])


def test_in_the_trash_over_there_as_well(pair: tuple[Home, Home]):
    here, there = pair
    entry = shared(here, there)
    there.delete("s")
    erase(here, "s", entry.id)
    [row] = here.push(there)
    assert (row.outcome, row.erased) == ("deleted", 1)
    assert not has_secret(there)


def test_restored_under_another_name_it_is_still_known(pair: tuple[Home, Home]):
    here, there = pair
    entry = shared(here, there)
    erase(here, "s", entry.id)
    here.delete("s")
    here.restore("s", as_="t")
    assert [one.why for one in here.read("t").erasures()] == ["a key"]


def test_a_fact_that_a_fork_over_there_repeats(pair: tuple[Home, Home]):
    here, there = pair
    with here.create(id="s") as session:
        session.user("x")
        fact = session.set("pin", SECRET)
    here.push(there)
    with there.resume("s") as session:
        session.fork(id="only there").user("y")
    erase(here, "s", fact.id)
    here.push(there)
    assert SECRET not in str([list(log.read()) for log in derived.all_logs(interior(there).store)])
    assert there.read("only there").facts == {}
