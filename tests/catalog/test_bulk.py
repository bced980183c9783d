"""A first indexing, or any other with much to read: written in portions by a thread, in few segments."""

import gc
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.catalog.machine import Machine, same
from turnlog.catalog import Catalog
from turnlog.catalog.index.sqlite import writer
from turnlog.catalog.index.sqlite.database import Database
from turnlog.catalog.index.sqlite.writer import SqliteWriter
from turnlog.catalog.read import indexer
from turnlog.errors import Unavailable


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(indexer, "_BULK", 0)
    return Machine(tmp_path, monkeypatch)


def _one(catalog: Catalog, sql: str) -> int:
    catalog.refresh()
    with closing(sqlite3.connect(catalog.path)) as db:
        return db.execute(sql).fetchone()[0]


def _segments(catalog: Catalog) -> int:
    return _one(catalog, "SELECT count(DISTINCT segid) FROM words_idx")


def _automerge(catalog: Catalog) -> int:
    return _one(catalog, "SELECT v FROM words_config WHERE k = 'automerge'")


def test_a_portion_is_one_segment(machine: Machine):
    machine.claude("long", 150)
    with machine.catalog() as catalog:
        assert _one(catalog, "SELECT count(*) FROM docs") > 400
        assert _segments(catalog) == 1
        assert _automerge(catalog) > 0


def test_a_bulk_that_could_not_begin_leaves_the_garbage_collector_as_it_was(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
):
    class Gone(Database):
        def __init__(self, path: str, **more: int) -> None:
            super().__init__(f"{path}.gone", **more)

    machine.claude("one")
    before = gc.get_threshold()
    with machine.catalog() as catalog:
        catalog.sync()
        machine.claude("two")
        monkeypatch.setattr(writer, "Database", Gone)
        with pytest.raises(Unavailable, match="again and again"):
            catalog.sync()
    assert gc.get_threshold() == before


def test_much_comes_to_the_same_as_little(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(SqliteWriter, "most", 500)
    for number in range(6):
        (machine.claude if number % 2 else machine.codex)(f"s{number}", 4)
    machine.ours("mine", 3)
    with machine.catalog() as catalog:
        catalog.sync()
        assert _segments(catalog) > 5
        monkeypatch.setattr(indexer, "_BULK", 1 << 30)
        with machine.fresh() as other:
            same(catalog, other)


@pytest.mark.parametrize("at", [1, 3])
def test_a_portion_that_cannot_be_written_is_an_error_and_the_rest_is_read_later(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, at: int
):
    monkeypatch.setattr(SqliteWriter, "most", 500)
    for number in range(6):
        machine.claude(f"s{number}", 4)
    write, count = SqliteWriter._add, 0

    def fail(self: SqliteWriter, *args: object) -> None:
        nonlocal count
        write(self, *args)  # pyright: ignore[reportArgumentType]
        count += 1
        if count == at:
            raise Unavailable("the disk is not there")

    with monkeypatch.context() as patched, machine.catalog() as catalog:
        patched.setattr(SqliteWriter, "_add", fail)
        with pytest.raises(Unavailable, match="the disk is not there"):
            catalog.sync()
    database = Database(str(machine.index))
    assert database.connection.execute("SELECT count(*) FROM docs").fetchone()[0] < 6 * 8
    database.close()
    with machine.catalog() as catalog, machine.fresh() as fresh:
        same(catalog, fresh)
        assert _automerge(catalog) > 0
