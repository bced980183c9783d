"""Several processes at one catalog, killed ones among them; and catalogs that something happened to."""

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.catalog.machine import Machine, answers, run, same
from turnlog.catalog import Catalog
from turnlog.catalog.index.sqlite.database import Database
from turnlog.catalog.index.sqlite.schema import VERSION
from turnlog.errors import Unavailable

_ASK = """
import os, signal, sys
from turnlog.catalog import Catalog
from turnlog.catalog.index.sqlite.writer import SqliteWriter
home, portion, left = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
SqliteWriter.most = portion
def progress(what, done, total):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
with Catalog(home, progress=progress) as catalog:
    print(len(catalog.cards(everything=True)), catalog.usage(by="model")[-1].requests)
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path, monkeypatch)
    for number in range(6):
        made.claude(f"a{number}", 3)
        made.codex(f"b{number}", 2)
    made.ours("cccc", 4)
    made.settle()
    return made


def test_many_processes_ask_at_once(machine: Machine):
    command = [sys.executable, "-c", _ASK, str(machine.home), "500", "0"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(5)]
    told = {process.communicate()[0] for process in processes}
    assert [process.returncode for process in processes] == [0] * 5
    assert len(told) == 1, "everybody waits for what somebody else is reading"
    with machine.catalog() as catalog, machine.fresh() as fresh:
        assert catalog.sync().read == 0
        same(catalog, fresh)


@pytest.mark.parametrize("left", [2, 5, 9, 13])
def test_who_is_killed_while_reading_leaves_what_can_be_gone_on_with(machine: Machine, left: int):
    done = run(_ASK, str(machine.home), "300", str(left))
    assert done.returncode == -signal.SIGKILL
    with machine.catalog() as catalog, machine.fresh() as fresh:
        read = catalog.sync().read
        assert read <= 13
        same(catalog, fresh)
        assert left < 9 or read < 13, "what was read is not read again"


def test_who_is_killed_while_it_catches_up(machine: Machine):
    with machine.catalog() as catalog:
        catalog.sync()
    machine.claude("a0", 5)
    machine.claude("a1", 5)
    (machine.user / ".claude/projects/-work/a2.jsonl").unlink()
    for left in (1, 2):
        assert run(_ASK, str(machine.home), "200", str(left)).returncode == -signal.SIGKILL
    with machine.catalog() as catalog, machine.fresh() as fresh:
        same(catalog, fresh)


def test_who_asks_while_somebody_reads_waits_and_is_told(machine: Machine):
    told: list[str] = []
    with machine.catalog() as catalog:
        catalog.sync()
    database = Database(str(machine.index))
    machine.claude("a0", 1)
    with database.lock():
        program = (
            "import sys; from turnlog.catalog import Catalog\n"
            "with Catalog(sys.argv[1], progress=lambda *told: print(*told, flush=True)) as catalog: catalog.sync()"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(machine.home)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        told.append(process.stdout.readline())
    rest = process.communicate()[0]
    assert told == ["another turnlog is indexing 0 0\n"]
    assert "indexing" in rest
    assert process.returncode == 0


def test_who_finds_nothing_changed_waits_for_nobody(machine: Machine):
    with machine.catalog() as catalog:
        catalog.sync()
    with Database(str(machine.index)).lock(), machine.catalog() as catalog:
        assert len(catalog.cards()) == 13


# ── catalogs that something happened to ───────────────────────────────────────────────────────────


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _zero(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(bytes(size - 4096))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no database, and never was one " * 1000)


def _older(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {VERSION - 1}")
    db.close()


def _foreign(path: Path) -> None:
    path.unlink()
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE sessions (id)")
    db.close()


def _without_table(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("DROP TABLE spent")
    db.close()


def _without_words(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("PRAGMA writable_schema = ON")
    db.execute("DELETE FROM words_data")
    db.commit()
    db.close()


def _deleted(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(
    "harm", [_cut, _zero, _empty, _garbage, _older, _foreign, _without_table, _without_words, _deleted]
)
def test_a_damaged_catalog_is_made_again(machine: Machine, harm):
    with machine.catalog() as catalog:
        before = answers(catalog)
    harm(machine.index)
    machine.claude("a0", 1)
    with machine.catalog() as catalog, machine.fresh() as fresh:
        assert len(catalog.cards()) == 13
        same(catalog, fresh)
        assert len(answers(catalog)["docs"]) > len(before["docs"])


def _lost_text(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("DELETE FROM texts WHERE id = (SELECT max(id) FROM texts)")
    db.commit()
    db.close()


@pytest.mark.parametrize("harm", [_lost_text, _without_words])
def test_damage_that_only_a_question_finds_is_mended_as_well(machine: Machine, harm):
    with machine.catalog() as catalog:
        before = [(hit.card.id, hit.entry) for hit in catalog.search("haystack", limit=100)]
    assert before
    harm(machine.index)
    with machine.catalog() as catalog:
        assert [(hit.card.id, hit.entry) for hit in catalog.search("haystack", limit=100)] == before


def test_a_catalog_deleted_while_it_is_open_is_noticed(machine: Machine):
    with machine.catalog() as catalog:
        catalog.sync()
        machine.index.unlink()
        machine.claude("a0", 1)
        assert catalog.sync().is_rebuilt
        with machine.fresh() as fresh:
            same(catalog, fresh)


def test_a_folder_in_the_place_of_the_catalog(machine: Machine):
    machine.index.mkdir()
    with machine.catalog() as catalog, pytest.raises(Unavailable, match="could not be written: it is a folder"):
        catalog.sync()


def test_the_catalog_is_private(machine: Machine):
    before = os.umask(0)
    try:
        with machine.catalog() as catalog:
            catalog.sync()
    finally:
        os.umask(before)
    for name in os.listdir(machine.home):
        if name.startswith("catalog"):
            assert (machine.home / name).stat().st_mode & 0o077 == 0, name


def test_to_ask_where_nothing_changed_loads_little(machine: Machine):
    program = """
import sys
from turnlog.catalog import Catalog
with Catalog(sys.argv[1]) as catalog:
    assert len(catalog.cards()) == 13
    assert catalog.find("cccc").is_ours
    assert catalog.usage(by="day")
    heavy = ("msgspec", "turnlog.log", "turnlog.store", "turnlog.formats", "turnlog.pricing", "dataclasses", "inspect",
             "asyncio", "pathlib", "json", "genai_prices", "turnlog.session.home", "turnlog.session.session")
    light = {"turnlog.log", "turnlog.log.digest", "turnlog.log.ids", "turnlog.log.startup"}  # none loads anything else
    print([name for name in sys.modules if name.startswith(heavy) and name not in light])
"""
    with machine.catalog() as catalog:
        catalog.sync()
    done = run(program, str(machine.home))
    assert done.stdout == "[]\n", done.stderr


def test_progress_ends_where_it_said(machine: Machine):
    told: list[tuple[str, int, int]] = []
    with Catalog(str(machine.home), progress=lambda *row: told.append(row)) as catalog:
        catalog.sync()
    assert {what for what, _, _ in told} == {"indexing"}
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert told[-1][1] == told[-1][2] == max(total for _, _, total in told) > 0
