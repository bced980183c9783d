"""An index that is damaged is made again, whoever comes across the damage; and what is damaged elsewhere harms none."""

import os
import shutil
import sqlite3
import threading
import time
import uuid
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import turnlog
from tests.catalog.machine import Machine, same
from tests.pgserver import Server
from turnlog.catalog import Catalog
from turnlog.catalog.index.sqlite.damage import Damaged, reporting_disk_errors
from turnlog.catalog.index.sqlite.database import Database
from turnlog.catalog.read.indexer import Indexer
from turnlog.errors import OutOfSpace, Unavailable


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def change(path: str | Path, statement: str) -> None:
    db = sqlite3.connect(path)
    db.execute(statement)
    db.commit()
    db.close()


@pytest.mark.parametrize("is_asked_before", [False, True])
def test_to_rebuild_is_to_make_it_anew(machine: Machine, is_asked_before: bool):
    machine.claude("aaaa")
    with machine.catalog() as catalog:
        catalog.sync()
    change(machine.index, "UPDATE sessions SET preview = 'nobody said this'")
    with machine.catalog() as catalog, machine.fresh() as fresh:
        if is_asked_before:
            catalog.cards()
        assert catalog.rebuild().is_rebuilt
        same(catalog, fresh)


def test_a_text_that_cannot_be_unpacked_is_read_again(machine: Machine):
    machine.ours("one", 2)
    with machine.catalog() as catalog:
        before = [hit.snippet for hit in catalog.search("haystack")]
    change(machine.index, "UPDATE texts SET data = x'00'")
    with machine.catalog() as catalog, machine.fresh() as fresh:
        assert [hit.snippet for hit in catalog.search("haystack")] == before
        same(catalog, fresh)


def test_a_text_that_cannot_be_unpacked_does_not_stop_who_writes(machine: Machine):
    path = machine.claude("aaaa", 2)
    with machine.catalog() as catalog:
        catalog.sync()
    change(machine.index, "UPDATE texts SET data = x'00'")
    path.write_text(path.read_text().replace("needle", "another needle"))
    with machine.catalog() as catalog, machine.fresh() as fresh:
        same(catalog, fresh)


def _zero_page_of(path: str, table: str) -> None:
    """Damage the first page of a table, so that only who reads from it comes across that."""
    db = sqlite3.connect(path)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    [(page,)] = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,))
    [(size,)] = db.execute("PRAGMA page_size")
    db.close()
    with open(path, "r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))


def test_damage_beside_a_home_in_a_database_is_repaired(machine: Machine, postgres: Server):
    machine.claude("aaaa")
    location = f"{postgres.url}?tenant={uuid.uuid4()}"
    with turnlog.open(location) as home:
        home.create(id="ours").user("needle of ours")
        home.import_sessions()
    with Catalog(location, agents=True) as catalog:
        before = {card.name for card in catalog.cards(everything=True)}
        path = catalog.path
    assert len(before) > 2
    _zero_page_of(path, "sessions")
    with Catalog(location, agents=True) as catalog:
        catalog.sync()
        assert {card.name for card in catalog.cards(everything=True)} == before


def test_an_error_of_ours_is_no_damage_of_the_index(
    machine: Machine, postgres: Server, monkeypatch: pytest.MonkeyPatch
):
    from turnlog.catalog.index import reconcile

    def fail(*_: object) -> None:
        raise TypeError("a fault of ours")

    machine.claude("aaaa")
    location = f"{postgres.url}?tenant={uuid.uuid4()}"
    with turnlog.open(location) as home:
        home.create(id="ours").user("needle of ours")
    monkeypatch.setattr(reconcile, "_by_session", fail)
    monkeypatch.setattr(reconcile, "_changed_pairs", lambda *_: ([], {1}))
    with Catalog(location, agents=True) as catalog, pytest.raises(TypeError, match="a fault of ours"):
        catalog.sync()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_FULL, OutOfSpace),
        (sqlite3.SQLITE_BUSY, Unavailable),
        (sqlite3.SQLITE_IOERR_WRITE, Unavailable),
        (sqlite3.SQLITE_CANTOPEN, Unavailable),
        (sqlite3.SQLITE_READONLY, Unavailable),
        (sqlite3.SQLITE_ERROR, Damaged),
        (sqlite3.SQLITE_CORRUPT_INDEX, Damaged),
    ],
)
def test_what_the_system_refuses_is_no_damage(code: int, kind: type[Exception]):
    error = sqlite3.OperationalError("in whatever words")
    error.sqlite_errorcode = code
    with pytest.raises(kind), reporting_disk_errors("/there/index.sqlite"):
        raise error


# ── who waits ─────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def writer(path: Path, seconds: float) -> Generator[None]:
    """Another writer, for so long."""
    taken = threading.Event()

    def write() -> None:
        with Database(str(path)).lock():
            taken.set()
            time.sleep(seconds)

    thread = threading.Thread(target=write)
    thread.start()
    assert taken.wait(10)
    try:
        yield
    finally:
        thread.join()


@pytest.mark.parametrize("act", [Catalog.complete, Catalog.forget_purged, Catalog.rebuild, Catalog.sync])
def test_only_questions_run_out_of_patience(machine: Machine, act):
    machine.claude("aaaa")
    with machine.catalog(patience_s=0.05, fresh_for=0) as catalog:
        catalog.cards()
        machine.claude("bbbb")
        with writer(machine.index, 0.5):
            assert [card.id for card in catalog.cards()] == ["aaaa"]
            assert catalog.is_behind
            act(catalog)
        assert {card.id for card in catalog.cards()} == {"aaaa", "bbbb"}
        assert not catalog.is_behind


def _replaced_before_the_lock(catalog: Catalog, other: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process rebuilds the index while this one waits for the lock."""
    lock = catalog._local.database.lock

    def late(waiting: object = None) -> object:
        monkeypatch.undo()
        other.rebuild()
        other.close()
        return lock(None)

    monkeypatch.setattr(catalog._local.database, "lock", late)


def test_what_was_found_in_one_index_is_not_applied_to_another(machine: Machine):
    projects = machine.user / ".claude" / "projects"
    for names in (["z"], ["a", "b"]):  # the numbers of the folders are not those of a new index
        for name in names:
            machine.claude(f"in-{name}", project=name)
        machine.settle()
        with machine.catalog() as catalog:
            catalog.sync()
    with machine.catalog(fresh_for=0) as catalog, machine.catalog() as other:
        assert len(catalog.cards()) == 3
        shutil.rmtree(projects / "z")
        old = time.time_ns() - 5_000_000_000
        os.utime(projects, ns=(old, old))
        with pytest.MonkeyPatch.context() as patched:
            _replaced_before_the_lock(catalog, other, patched)
            assert {card.id for card in catalog.cards()} == {"in-a", "in-b"}
    machine.claude("more-a", project="a")
    machine.claude("more-b", project="b")
    with machine.catalog() as catalog:
        assert {card.id for card in catalog.cards()} == {"in-a", "in-b", "more-a", "more-b"}


def test_purged_texts_are_removed_from_the_file_that_counts(machine: Machine):
    machine.ours("secret")
    with machine.catalog() as catalog, machine.catalog() as other:
        assert catalog.cards()
        other.rebuild()
        with turnlog.open(str(machine.home), checkpoints=False) as home:
            home.delete("secret")
            home.purge("secret")
        catalog.forget_purged()
        with closing(sqlite3.connect(other.path)) as db:
            assert db.execute("SELECT count(*) FROM docs").fetchone() == (0,)


def test_an_index_is_not_thrown_away_because_it_is_busy(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    machine.ours("one")
    with machine.catalog() as catalog:
        assert catalog.cards()

        def busy(*_: object, **__: object) -> None:
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error

        with monkeypatch.context() as patched:
            patched.setattr(Indexer, "run", busy)
            with pytest.raises(sqlite3.OperationalError):
                catalog.forget_purged()
        with closing(sqlite3.connect(catalog.path)) as db:
            assert db.execute("SELECT count(*) FROM sessions").fetchone() == (1,)
