"""Sessions between two homes of any kind: the same lines, the same files, nothing twice."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import turnlog
from tests.moving.scene import KINDS, everything, lines, make, outcomes, said
from tests.pgserver import Server
from turnlog import Compaction, Custom, Image, Message, Note, Ref, Text, Usage
from turnlog.log.entry import Entry
from turnlog.session import Home
from turnlog.session.interior import interior
from turnlog.store import derived

PAIRS = [(a, b) for a in KINDS for b in KINDS if (a, b) != ("memory", "memory")]


@pytest.fixture(params=PAIRS, ids=lambda pair: f"{pair[0]}-{pair[1]}")
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Home, Home]]:
    server = request.getfixturevalue("postgres") if "postgres" in request.param else None
    here, there = (make(kind, tmp_path, server) for kind in request.param)
    yield here, there
    here.close()
    there.close()


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Home, Home]]:
    here, there = make("files", tmp_path), make("files", tmp_path)
    yield here, there
    here.close()
    there.close()


def placeless(entry: Message) -> Message:
    """Without the hint that only means something in one file."""
    return replace(entry, wide=0)


def rich(home: Home, name: str = "s") -> None:
    """A session with everything in it that a log can have."""
    session = home.create(id=name, title="first", agent="my-agent", labels={"team": "shop"})
    session.append(Message(role="system", blocks=[Text(text="be brief")]))
    first = session.user("one")
    session.assistant("two", usage=Usage(input_tokens=3, output_tokens=4), model="m", request="r")
    session.set("title", "second")
    session.append(Note(text="a"), Note(text="b"))
    session.user("x" * 200_000)
    session.append(Message(role="user", blocks=[Image(media_type="image/png", data=b"\x89PNG" * 100)]))
    session.append(Compaction(replacement=[Message(role="user", blocks=[Text(text="so far")]), Ref(first.seq)]))
    session.rewind(to=first.seq)
    session.append(Custom(kind="my.plan", data={"a": [1, None]}))
    session.set("big", "y" * 100_000)
    session.user("three")
    session.close()


def test_a_session_comes_over_line_by_line(pair: tuple[Home, Home]):
    here, there = pair
    rich(here)
    [row] = here.push(there)
    assert (row.id, row.outcome, row.problems) == ("s", "new", [])
    assert row.entries == len(lines(here, "s"))
    assert row.blobs == 3
    assert everything(there) == everything(here)
    for home in pair:
        with home.resume("s") as session:
            assert session.title == "second"
            assert session.get("big") == "y" * 100_000
            assert said(home, "s")[-1] == "three"
    with here.resume("s") as mine, there.resume("s") as theirs:
        assert [placeless(entry) for entry in mine.context()] == [placeless(entry) for entry in theirs.context()]
        assert mine.usage() == theirs.usage()
        assert mine.stats() == theirs.stats()
        assert mine.branches() == theirs.branches()
    [info], [original] = there.sessions(), here.sessions()
    assert (info.title, info.labels, info.updated_at) == (original.title, original.labels, original.updated_at)


def test_what_is_there_is_not_sent_again(pair: tuple[Home, Home]):
    here, there = pair
    rich(here)
    here.push(there)
    before = everything(there)
    [row] = here.push(there)
    assert (row.outcome, row.entries, row.blobs) == ("same", 0, 0)
    with here.resume("s") as session:
        session.user("four")
        session.user("z" * 100_000)
    [row] = here.push(there)
    assert (row.outcome, row.entries, row.blobs) == ("grown", 2, 1)
    assert everything(there) == everything(here)
    assert everything(there)["s"][: len(before["s"])] == before["s"]


def test_it_goes_on_there_and_comes_back(pair: tuple[Home, Home]):
    here, there = pair
    rich(here)
    here.push(there)
    with there.resume("s") as session:
        session.user("there")
        session.set("title", "third")
    assert outcomes(here.pull(there)) == {"s": "grown"}
    assert everything(there) == everything(here)
    assert said(here, "s")[-1] == "there"
    [info] = here.sessions()
    assert info.title == "third"
    with here.resume("s") as session:
        session.user("and back")
    assert outcomes(here.push(there)) == {"s": "grown"}
    assert said(there, "s")[-2:] == ["there", "and back"]


def test_a_session_that_is_open_on_the_other_side_is_told(two: tuple[Home, Home]):
    here, there = two
    session = here.create(id="s")
    session.user("one")
    here.push(there)
    open_there = there.resume("s")
    session.user("two")
    here.push(there)
    with pytest.raises(turnlog.Conflict):
        open_there.user("mine")
    open_there.refresh()
    open_there.user("three")
    assert said(there, "s") == ["one", "two", "three"]


# ── forks, subagents, the trash ───────────────────────────────────────────────────────────────────


def test_forks_come_after_what_they_build_on(pair: tuple[Home, Home]):
    here, there = pair
    session = here.create(id="root")
    session.user("one")
    two = session.user("two")
    child = session.fork(two.seq, name="idea", id="child")
    child.user("other")
    grandchild = child.fork(id="grandchild")
    grandchild.user("deeper")
    session.user("three")
    assert outcomes(here.push(there, ["grandchild"])) == {"root": "new", "child": "new", "grandchild": "new"}
    assert everything(there) == everything(here)
    assert said(there, "grandchild") == ["one", "two", "other", "deeper"]
    there.purge("root")
    assert said(there, "grandchild") == ["one", "two", "other", "deeper"]


def test_a_parent_that_was_deleted_or_purged_comes_along_and_stays_out_of_sight(pair: tuple[Home, Home]):
    here, there = pair
    for name in ("deleted", "purged"):
        session = here.create(id=name)
        at = session.user(f"said in {name}")
        session.user("more")
        session.fork(at.seq, id=f"of-{name}").user("on")
        session.close()
    here.delete("deleted")
    here.purge("purged")
    here.push(there)
    assert sorted(derived.ids(interior(there).store)) == ["of-deleted", "of-purged"]
    assert sorted(info.id for info in there.sessions(deleted=True)) == ["deleted", "purged"]
    assert said(there, "of-deleted") == ["said in deleted", "on"]
    assert said(there, "of-purged") == ["said in purged", "on"]
    there.restore("deleted")
    assert said(there, "deleted") == ["said in deleted", "more"]


def test_what_was_deleted_there_stays_deleted(pair: tuple[Home, Home]):
    here, there = pair
    session = here.create(id="s")
    session.user("one")
    here.push(there)
    there.delete("s")
    two = session.user("two")
    assert outcomes(here.push(there)) == {"s": "deleted"}
    assert list(derived.ids(interior(there).store)) == []
    session.fork(two.seq, id="child").user("three")
    assert outcomes(here.push(there))["child"] == "new"
    assert list(derived.ids(interior(there).store)) == ["child"]
    assert said(there, "child") == ["one", "two", "three"]
    assert everything(there)["child"] == everything(here)["child"]


def test_what_was_purged_there_and_forked_comes_back_when_it_is_pushed(pair: tuple[Home, Home]):
    here, there = pair
    session = here.create(id="s")
    one = session.user("one")
    here.push(there)
    there.resume("s").fork(one.seq, id="child").user("there")
    there.purge("s")
    session.user("two")
    here.push(there)
    assert said(there, "s") == ["one", "two"]
    assert lines(there, "s") == lines(here, "s")


def test_subagents_come_with_the_session_that_started_them(pair: tuple[Home, Home]):
    here, there = pair
    session = here.create(id="s")
    session.user("one")
    sub = session.spawn(agent="explorer", call="c1", id="sub")
    sub.user("look")
    sub.spawn(agent="deeper", id="subsub").user("dig")
    here.create(id="unrelated").user("no")
    assert sorted(outcomes(here.push(there, ["s"]))) == ["s", "sub", "subsub"]
    with there.resume("s") as copy:
        assert [info.id for info in copy.children()] == ["sub"]
    assert sorted(derived.ids(interior(there).store)) == ["s", "sub", "subsub"]


def test_ids_are_whole_and_unknown_ones_are_refused(two: tuple[Home, Home]):
    here, there = two
    with here.create() as session:
        session.user("one")
    with pytest.raises(turnlog.NotFound):
        here.push(there, [session.handle])
    here.push(there, [here.find(session.handle)])
    assert list(derived.ids(interior(there).store)) == [session.id]
    with pytest.raises(turnlog.NotFound):
        here.push(there, ["nobody"])
    with pytest.raises(turnlog.Invalid):
        here.push(here)
    with pytest.raises(turnlog.NotFound):
        here.sync(there, ["nobody"])


def test_a_dry_run_tells_and_changes_nothing(pair: tuple[Home, Home]):
    here, there = pair
    rich(here)
    session = here.resume("s")
    session.fork(id="child").user("z" * 100_000)
    rows = here.push(there, dry_run=True)
    assert list(derived.ids(interior(there).store)) == []
    assert there.disk()["blobs"] == 0
    done = here.push(there)
    told = [(row.id, row.outcome, row.entries, row.blobs) for row in rows]
    assert told == [(row.id, row.outcome, row.entries, row.blobs) for row in done]


# ── files ─────────────────────────────────────────────────────────────────────────────────────────


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_session_begun_in_files_is_resumed_from_postgresql_with_its_workspace(tmp_path: Path, postgres: Server):
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "src" / "app.py").write_bytes(b"print('one')\n")
    (work / "data.bin").write_bytes(bytes(range(256)) * 50_000)  # larger than what is held in memory
    url = f"{postgres.url}?tenant=moving-{tmp_path.name}"
    with turnlog.open(tmp_path / "first") as here, here.create(workspace=work, id="s") as session:
        with session.turn():
            session.user("change it")
            (work / "src" / "app.py").write_bytes(b"print('two')\n")
            (work / "new.txt").write_bytes(b"new\n")
        before = snapshot(work)
        with session.turn():
            session.user("break it")
            (work / "src" / "app.py").unlink()
            (work / "data.bin").write_bytes(b"gone")
        with turnlog.open(url) as server:
            [row] = here.push(server)
            assert row.blobs >= 5
    with turnlog.open(url) as server, turnlog.open(tmp_path / "second") as other:
        other.pull(server, ["s"])
        server.gc()
        for home in (server, other):
            with home.resume("s") as session:
                session.rewind(turns=1)
                assert snapshot(work) == before
                session.undo()
                assert snapshot(work) != before
                session.rewind(turns=1)
                assert snapshot(work) == before
                session.undo()


@pytest.mark.parametrize("is_there", [False, True])
def test_collecting_there_meanwhile_takes_nothing_away(
    two: tuple[Home, Home], monkeypatch: pytest.MonkeyPatch, is_there: bool
):
    """Also not what happens to be there already, and nobody refers to yet."""
    here, there = two
    rich(here)
    if is_there:
        needed = {
            name
            for item in interior(here).store.open("s", read_only=True).read()
            if isinstance(item, Entry)
            for name in item.blobs
        }
        derived.put(interior(there).store, {name: here.get_blob(name) for name in needed})
    store: Any = interior(there).store
    lacking, adopt = store.lacking, store.adopt
    is_done = threading.Event()
    collector = threading.Thread(target=lambda: (there.gc(), is_done.set()))

    def and_collect(digests: Any) -> set[str]:
        found = lacking(digests)
        if not collector.ident:
            collector.start()
        return found

    def late(*words: Any, **how: Any) -> None:
        is_done.wait(0.2)  # it cannot be done before we are
        adopt(*words, **how)

    monkeypatch.setattr(store, "lacking", and_collect)
    monkeypatch.setattr(store, "adopt", late)
    here.push(there)
    collector.join()
    for item in interior(there).store.open("s", read_only=True).read():
        assert not isinstance(item, Entry) or not derived.lacking(interior(there).store, item.blobs)
    with there.resume("s") as session:
        assert session.get("big") == "y" * 100_000


def test_dropped_checkpoints_move_without_their_content(two: tuple[Home, Home], tmp_path: Path):
    here, there = two
    work = tmp_path / "work"
    work.mkdir()
    session = here.create(workspace=work, id="s")
    for number in range(3):
        (work / "file").write_bytes(bytes([number]) * 5000)
        with session.turn():
            session.user(str(number))
    session.checkpoint("mine")
    assert here.gc(quota_bytes=0).dropped
    [row] = here.push(there)
    assert row.problems == []
    assert there.gc().blobs == 0
