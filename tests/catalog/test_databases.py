"""Agents that keep all their sessions in one database, and may be writing to it."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.catalog.machine import Machine, same
from turnlog.catalog import Catalog
from turnlog.catalog.index.sqlite.database import MemoryDatabase
from turnlog.catalog.index.sqlite.watchlist import Watchlist
from turnlog.catalog.read.indexer import Indexer

RECORDED = Path(__file__).parents[1] / "formats" / "agents" / "opencode" / "recorded" / "opencode.db"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.fixture
def database(machine: Machine) -> Path:
    path = machine.user / ".local" / "share" / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True)
    shutil.copy(RECORDED, path)
    machine.settle()
    return path


def _ids(catalog: Catalog) -> set[str]:
    return {card.id for card in catalog.cards(everything=True)}


def test_only_the_session_that_changed_is_read(machine: Machine, database: Path):
    with machine.catalog() as catalog:
        count = len(_ids(catalog))
    assert count > 3
    with sqlite3.connect(database) as base:
        [id] = base.execute("SELECT id FROM session ORDER BY id LIMIT 1").fetchone()
        base.execute("UPDATE session SET title = 'another name', time_updated = time_updated + 1 WHERE id = ?", (id,))
    base.close()
    with machine.catalog() as catalog, machine.fresh() as fresh:
        assert catalog.sync().read == 1
        assert catalog.find(id).title == "another name"
        same(catalog, fresh)


def test_what_is_only_in_the_write_ahead_log_counts(machine: Machine, database: Path):
    base = sqlite3.connect(database, isolation_level=None)
    try:
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with machine.catalog() as catalog:
            catalog.sync()
        [id] = base.execute("SELECT id FROM session ORDER BY id LIMIT 1").fetchone()
        base.execute("UPDATE session SET title = 'just now', time_updated = time_updated + 1 WHERE id = ?", (id,))
        with machine.catalog() as catalog:
            assert catalog.find(id).title == "just now"
    finally:
        base.close()
    with machine.catalog() as catalog, machine.fresh() as fresh:
        same(catalog, fresh)


def test_a_session_that_is_deleted_there_leaves(machine: Machine, database: Path):
    with machine.catalog() as catalog:
        before = _ids(catalog)
    gone = min(before)
    with sqlite3.connect(database) as base:
        for table, column in (("part", "session_id"), ("message", "session_id"), ("session", "id")):
            base.execute(f"DELETE FROM {table} WHERE {column} = ?", (gone,))
    base.close()
    with machine.catalog() as catalog, machine.fresh() as fresh:
        assert _ids(catalog) == before - {gone}
        same(catalog, fresh)


def test_a_database_that_cannot_be_read_any_more_hides_nothing(machine: Machine, database: Path):
    with machine.catalog() as catalog:
        before = _ids(catalog)
    database.write_bytes(b"SQLite format 3\0" + bytes(5000))
    with machine.catalog() as catalog:
        assert _ids(catalog) == before
        assert all("cannot be read" in card.problem for card in catalog.cards(everything=True))


def test_a_database_that_was_packed_was_not_cut(machine: Machine, database: Path):
    with sqlite3.connect(database) as base:
        base.execute("CREATE TABLE ballast AS SELECT zeroblob(1000000) AS data")
    base.close()
    machine.settle()
    with machine.catalog() as catalog:
        ids = _ids(catalog)
    with sqlite3.connect(database) as base:
        base.execute("DROP TABLE ballast")
        base.execute("UPDATE session SET time_updated = time_updated + 1")
    base.execute("VACUUM")
    base.close()
    machine.settle()
    with machine.catalog() as catalog:
        assert catalog.sync().read == len(ids)
        assert [card.problem for card in catalog.cards(everything=True) if card.problem] == []


def test_a_fork_in_a_store_without_files_is_not_removed_because_it_has_no_file():
    database = MemoryDatabase()
    database.make()
    database.connection.execute(
        "INSERT INTO sessions (id, name, native, is_ours, path, key, fork) VALUES (1, 'f', 'f', 1, '', '', 'parent')"
    )
    indexer = Indexer(database, None, lambda: pytest.fail("no home is needed"), None)
    [fork] = Watchlist(database.connection).forks_of("parent")
    assert indexer._job(fork) is None
    indexer._batch.write_out()
    assert database.connection.execute("SELECT count(*) FROM sessions").fetchone() == (1,)
    database.close()
