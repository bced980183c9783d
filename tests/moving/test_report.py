"""One row for each session, and what it says is what was done: batches, the trash, dry runs, ignored files."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.moving.scene import KINDS, everything, lines, make, outcomes
from tests.pgserver import Server
from turnlog import Message, Note, Text
from turnlog.log.written import WrittenLine
from turnlog.session import Home
from turnlog.session.interior import interior
from turnlog.store import derived
from turnlog.store.files import FileStore


@pytest.fixture(params=KINDS)
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    server: Server | None = request.getfixturevalue("postgres") if request.param == "postgres" else None
    with make(request.param, tmp_path, server) as home:
        yield home


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Home]:
    with make("files", tmp_path) as home:
        yield home


def all_lines(home: Home) -> dict[str, list[bytes]]:
    """Every log of a home, those aside included."""
    return {
        log.id: [item.line for item in log.lines() if isinstance(item, WrittenLine)]
        for log in derived.all_logs(interior(home).store)
    }


def file_of(home: Home, session_id: str) -> Path:
    store = interior(home).store
    assert isinstance(store, FileStore)
    return Path(store.file_of(session_id))


def test_a_fork_that_begins_in_a_batch_comes_over_without_its_purged_parent(here: Home, there: Home):
    with here.create(id="s") as session:
        texts = [Message(role="user", blocks=[Text(text=text)]) for text in ("one", "two", "three")]
        _, second, _ = session.append(*texts)
        session.fork(second.seq, id="child").user("after two")
    here.purge("s")
    for _ in range(2):
        rows = {row.id: row for row in here.push(there)}
        assert [row.error for row in rows.values()] == [None] * len(rows)
        assert rows["child"].problems == []
    assert everything(there) == everything(here)
    assert lines(there, "s") == all_lines(here)["s"]


@pytest.mark.parametrize("parent", ["0-parent", "z-parent"])
def test_a_parent_in_the_trash_that_its_fork_needs_is_one_row_and_not_left_alone(tmp_path: Path, parent: str):
    here, there = make("files", tmp_path), make("files", tmp_path)
    here.create(id=parent).user("one")
    here.resume(parent).fork(id="m-child").user("child")
    here.push(there)
    there.delete(parent)
    new = here.resume(parent).user("two")
    here.resume(parent).fork(new.seq, id="m-late").user("late")
    rows = list(here.push(there))
    assert sorted(row.id for row in rows) == sorted({row.id for row in rows})
    assert outcomes(rows) == {parent: "grown", "m-child": "same", "m-late": "new"}
    assert [session.id for session in there.sessions(deleted=True)] == [parent]
    assert outcomes(list(here.push(there))) == {parent: "deleted", "m-child": "same", "m-late": "same"}


@pytest.mark.parametrize("parent", ["0-parent", "z-parent"])
def test_a_parent_that_was_merged_before_its_fork_needed_it_is_one_row(tmp_path: Path, parent: str):
    here, there = make("files", tmp_path), make("files", tmp_path)
    here.create(id=parent).user("one")
    here.push(there)
    there.resume(parent).user("theirs")
    note = here.resume(parent).append(Note(text="mine"))
    here.resume(parent).fork(note.seq, id="m-child").user("child")
    for outcome in ("forked", "same"):
        rows = list(here.push(there))
        assert sorted(row.id for row in rows) == sorted({row.id for row in rows})
        assert outcomes(rows)[parent] == outcome


def test_a_dry_run_writes_nothing_at_the_target(tmp_path: Path):
    """Not even the newline that the last writer had no time for."""
    here, there = make("files", tmp_path), make("files", tmp_path)
    here.create(id="s").user("one")
    here.push(there)
    here.resume("s").append(Note(text="new"))
    path = file_of(there, "s")
    with path.open("rb+") as file:
        file.truncate(path.stat().st_size - 1)
    os.utime(path, ns=(1, 1))
    before = path.read_bytes()
    for text in ("two", None):
        [row] = here.push(there, dry_run=True)
        assert row.error is None
        assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, 1)
        if text is not None:
            here.resume("s").user(text)


def test_a_dry_run_says_what_a_merge_would_add_and_adds_nothing(tmp_path: Path):
    here, there = make("files", tmp_path), make("files", tmp_path)
    here.create(id="s").user("one")
    here.push(there)
    there.resume("s").append(Note(text="theirs"))
    here.resume("s").append(Note(text="mine"), Note(text="mine, too"))
    before = file_of(there, "s").read_bytes()
    [dry] = here.push(there, dry_run=True)
    assert file_of(there, "s").read_bytes() == before
    [row] = here.push(there)
    assert (dry.outcome, dry.entries) == (row.outcome, row.entries) == ("merged", 2)
