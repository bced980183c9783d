"""The first index is made by a process of its own: everybody has an answer before, and all of it afterwards."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.catalog.machine import Machine, run, same
from turnlog.catalog import Catalog, upkeep
from turnlog.catalog.background import lock_of
from turnlog.catalog.glance import claude_code, survey
from turnlog.catalog.glance.ends import SessionGlance
from turnlog.catalog.glance.index import GlanceIndex
from turnlog.catalog.index.notes import KEPT_LISTED, MAKING, PRICES, has_note, set_note
from turnlog.catalog.index.rows import GlanceRow
from turnlog.catalog.index.sqlite.damage import Damaged
from turnlog.catalog.index.sqlite.database import Database
from turnlog.catalog.index.sqlite.engine import SqliteEngine
from turnlog.catalog.index.sqlite.watchlist import Watchlist
from turnlog.catalog.read import indexer
from turnlog.catalog.read.indexer import Indexer
from turnlog.exchange.keeping.keptfile import KeptFiles
from turnlog.machine.detached import VARIABLE, is_taken

_MAKE = """
import os, signal, sys
from turnlog.catalog import Catalog, upkeep
upkeep._FIRST = upkeep._SLICE = 2000
home, left = sys.argv[1], int(sys.argv[2])
def progress(what, done, total):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
with Catalog(home, progress=progress) as catalog:
    catalog._make(os.getcwd())
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path, monkeypatch)
    for number in range(5):
        made.claude(f"a{number}", 2)
        made.codex(f"b{number}", 2)
    inner = made.claude("a0").read_text().replace('"isSidechain": false', '"isSidechain":true')
    with (made.user / ".claude/projects/-work/a1.jsonl").open("a") as file:
        file.write(inner.replace('"a0', '"s0'))
    (made.user / ".claude/projects/-work/nothing.jsonl").write_text('{"type": "queue-operation"}\n')
    made.ours("cccc", 4)
    made.settle()
    return made


@pytest.fixture
def much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever there is, it is too much to be read while somebody waits."""
    monkeypatch.setattr(upkeep, "AT_ONCE", 0)


def ended(catalog: Catalog) -> None:
    """The processes that make the index are done, also those that were begun and did not get to the lock yet."""
    for _ in range(600):
        with suppress(Damaged, sqlite3.Error), closing(Database(catalog.path)) as made:
            engine = SqliteEngine(made.connection)
            if has_note(engine, PRICES) and not has_note(engine, MAKING) and not begun(catalog):
                return
        time.sleep(0.05)
    pytest.fail("it never ended")


def begun(catalog: Catalog) -> bool:
    """Whether a process that makes the index runs or was begun."""
    location = str(catalog._local._location)
    listed = subprocess.run(  # with the environment: it has the home
        ["ps", "axEww" if sys.platform == "darwin" else "axeww", "-o", "args="],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return is_taken(lock_of(catalog.path)) or any(
        location in line and "index --background" in line for line in listed.splitlines()
    )


def test_what_is_read_in_slices_is_what_is_read_at_once(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(upkeep, "_FIRST", 2000)
    monkeypatch.setattr(upkeep, "_LARGE_SLICE", 2000)
    with machine.catalog() as catalog, machine.fresh() as fresh:
        catalog.complete()
        assert catalog.sync().read == 0
        assert catalog.standing().pending == 0
        same(catalog, fresh)


@pytest.mark.parametrize("is_read_at_once", [True, False])
def test_a_session_counts_and_not_the_deleted_one_with_its_id(machine: Machine, is_read_at_once: bool):
    with turnlog.open(str(machine.home), checkpoints=False) as home:
        home.create(id="twice").user("old words")
        home.delete("twice")
        home.create(id="twice").user("new words")
    with machine.catalog() as catalog:
        if not is_read_at_once:
            catalog.complete()
        assert [card.preview for card in catalog.cards("session:=twice", everything=True)] == ["new words"]
        assert catalog.cards(deleted=True) == []


def test_a_session_is_not_announced_as_the_deleted_one_with_its_id(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    with turnlog.open(str(machine.home), checkpoints=False) as home:
        home.create(id="twice", title="the old one").close()
        home.delete("twice")
        home.create(id="twice", title="the new one").close()
    titles: list[tuple[str, int, str | None]] = []

    def announce(watchlist: Watchlist, batch: object, session: int, row: GlanceRow, **more: Any) -> None:
        titles.append((row.native, row.is_deleted, row.title))
        announced(watchlist, batch, session, row, **more)

    announced: Any = Watchlist.announce
    monkeypatch.setattr(Watchlist, "announce", announce)
    with machine.catalog() as catalog:
        catalog.complete()
    assert [one for one in titles if one[0] == "twice"] == [("twice", 0, "the new one")]


def test_an_index_that_was_thrown_away_is_made_again_in_slices(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    """What sessions spent is known from before, also that of a subagent in its parent's file, which is found last."""
    monkeypatch.setattr(upkeep, "_FIRST", 2000)
    monkeypatch.setattr(upkeep, "_SLICE", 2000)
    alone = machine.claude("s1")
    with machine.claude("a2").open("a") as file:
        file.write(alone.read_text().replace('"isSidechain": false', '"isSidechain":true').replace('"s1"', '"a2"'))
    alone.unlink()
    machine.claude("newer", 2)
    machine.settle()
    with machine.catalog() as catalog:
        catalog.complete()
        before = catalog.usage()[-1]
    machine.index.unlink()
    with machine.catalog() as catalog, machine.fresh() as fresh:
        catalog.complete()
        assert catalog.usage()[-1] == before
        assert catalog.sync().read == 0
        same(catalog, fresh)


def test_sessions_that_went_and_came_back_are_read_in_slices(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(upkeep, "_FIRST", 2000)
    monkeypatch.setattr(upkeep, "_SLICE", 2000)
    folder, away = machine.user / ".codex", machine.folder / "away"
    with machine.catalog() as catalog:
        catalog.complete()
        before = catalog.usage()[-1]
        folder.rename(away)
        catalog.complete()
        assert {line.agent for line in catalog.lines()} == {"claude-code", ""}
        assert catalog.usage()[-1].tokens == before.tokens, "what was spent stays spent"
        away.rename(folder)
        catalog.complete()
        assert catalog.usage()[-1] == before
        with machine.fresh() as fresh:
            same(catalog, fresh)


@pytest.mark.usefixtures("much")
def test_there_is_an_answer_before_anything_was_read(machine: Machine):
    with machine.fresh() as fresh:
        told = {card.name: (card.workspace, card.preview) for card in fresh.cards() if not card.is_ours}
        names = {card.name for card in fresh.cards()}
    with machine.catalog(deferred=True) as catalog:
        with catalog._local.database.lock():  # whoever makes it waits here
            lines = catalog.lines()
            assert {line.name for line in lines} == names
            found = {card.name: (card.workspace, card.preview) for card in catalog.cards() if not card.is_ours}
            assert found == told
            assert not any(card.is_indexed for card in catalog.cards())
            assert catalog.find("claude-code:a3").path.endswith("a3.jsonl")
            assert (catalog.standing().indexed, catalog.standing().pending) == (0, len(names))
            assert not catalog.search("needle")
            assert catalog.usage()[-1].requests == 0
        ended(catalog)
    with machine.catalog(deferred=True) as catalog, machine.fresh() as fresh:
        assert catalog.sync().read == 0
        assert catalog.standing().pending == 0
        same(catalog, fresh)


@pytest.mark.usefixtures("much")
def test_a_session_that_begins_while_the_index_is_made_is_there_at_once(machine: Machine):
    with machine.catalog() as catalog:
        catalog._local.index_in_slices(str(machine.work))
        with catalog._local.database.lock(), machine.catalog(deferred=True) as other:
            machine.claude("new")
            assert "claude-code:new" in {line.name for line in other.lines()}
            assert other.find("claude-code:new").is_indexed is False
            assert other.standing().pending == 1
            assert other.search("needle"), "what was read before is found as ever"
        ended(catalog)
    with machine.catalog() as catalog, machine.fresh() as fresh:
        same(catalog, fresh)


@pytest.mark.usefixtures("much")
def test_what_is_read_while_somebody_takes_a_glance_is_there_once(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    class Slow(GlanceIndex):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            with machine.catalog() as other:
                other.complete()

    monkeypatch.setattr("turnlog.catalog.glance.index.GlanceIndex", Slow)
    monkeypatch.setattr("turnlog.catalog.background.start", lambda *_, **__: True)
    with machine.catalog() as catalog:
        catalog.complete()
    machine.claude("new")
    with machine.catalog(deferred=True) as catalog:
        assert [line.name for line in catalog.lines()].count("claude-code:new") == 1
        assert [card.is_indexed for card in catalog.cards() if card.id == "new"] == [True]
    machine.claude("newer")
    with machine.catalog(deferred=True) as catalog:
        assert catalog.find("newe").is_indexed


@pytest.mark.parametrize("left", [3, 8])
def test_who_is_killed_making_it_leaves_what_can_be_gone_on_with(machine: Machine, left: int):
    assert run(_MAKE, str(machine.home), str(left)).returncode == -signal.SIGKILL
    with machine.catalog(deferred=True) as catalog:
        assert len(catalog.lines()) > 5
        ended(catalog)
    with machine.catalog() as catalog, machine.fresh() as fresh:
        assert catalog.standing().pending == 0
        same(catalog, fresh)


@pytest.mark.usefixtures("much")
def test_it_can_be_forbidden(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(VARIABLE, "off")
    with machine.catalog(deferred=True) as catalog:
        assert catalog.search("needle")
        assert catalog.standing().pending == 0
        assert not Path(lock_of(catalog.path)).exists()


@pytest.mark.usefixtures("much")
def test_where_there_is_no_room_for_it_everything_is_read_at_once(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(upkeep, "has_room", lambda path, size: False)
    with machine.catalog(deferred=True) as catalog:
        assert catalog.search("needle")
        assert catalog.standing().pending == 0


@pytest.mark.usefixtures("much")
def test_what_nobody_looked_at_is_counted_and_found_by_its_name(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(survey, "_SHOWN", 2)
    monkeypatch.setattr(survey, "_NEAR", 0)
    with machine.catalog(deferred=True) as catalog:
        with catalog._local.database.lock():
            assert len([line for line in catalog.lines() if not line.is_ours]) == 2
            assert catalog.standing().unseen == 9  # one of them is no session: that is not known yet
            assert catalog.find("a0").name == "claude-code:a0"
            assert catalog.find("codex:b4").agent == "codex"
        ended(catalog)


class _Stopped(BaseException):
    """Raised where a process is stopped."""


def _announced_only(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin a first index that is stopped before anything was read."""

    def stopped(*_: object) -> None:
        raise _Stopped

    with monkeypatch.context() as patched:
        patched.setattr(Indexer, "_index_jobs", stopped)
        with pytest.raises(_Stopped):
            catalog.complete()


def test_an_index_that_was_stopped_is_finished_if_the_newest_session_is_gone(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(upkeep, "_FIRST", 2000)
    newest = machine.claude("newest", 5)
    machine.settle()
    later = time.time_ns() - 5_000_000_000
    os.utime(newest, ns=(later, later))
    with machine.catalog() as catalog:
        _announced_only(catalog, monkeypatch)
    newest.unlink()
    with machine.catalog() as catalog, machine.fresh() as fresh:
        catalog.complete()
        assert catalog.standing().pending == 0
        assert catalog.sync().read == 0
        same(catalog, fresh)


def test_an_unread_session_of_an_agent_that_cannot_be_read_keeps_no_other_from_being_read(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(upkeep, "_FIRST", 2000)
    with machine.catalog() as catalog:
        _announced_only(catalog, monkeypatch)
    with monkeypatch.context() as patched, machine.catalog() as catalog:
        patched.setattr(indexer, "can_read", lambda agent: agent != "codex")
        catalog.complete()
        assert {card.agent for card in catalog.cards() if not card.is_indexed} == {"codex"}
        assert catalog.standing().pending == 5, "they are not indexed, and nothing says they are"
    with machine.catalog() as catalog, machine.fresh() as fresh:
        catalog.complete()
        assert catalog.standing().pending == 0
        same(catalog, fresh)


def test_an_unread_session_that_is_kept_is_read_from_there(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    path = machine.user / ".claude/projects/-work/a3.jsonl"
    assert KeptFiles(str(machine.home)).keep("claude-code", str(path))
    with machine.catalog() as catalog:
        _announced_only(catalog, monkeypatch)
        database = catalog._local.database
        with database.lock(), database.writing() as db:
            set_note(SqliteEngine(db), KEPT_LISTED)  # it was stopped after the first slice
    path.unlink()
    with machine.catalog() as catalog:
        catalog.complete()
        card = catalog.find("claude-code:a3")
        assert card.is_indexed
        assert card.messages > 0


@pytest.mark.parametrize("error", [PermissionError, OSError])
def test_a_file_that_cannot_be_opened_for_a_glance_is_read_later(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, error: type[OSError]
):
    glance = claude_code.glance

    def broken(path: str, size: int) -> SessionGlance | None:
        if path.endswith("a2.jsonl"):
            raise error(5, "it does not work now", path)
        return glance(path, size)

    with machine.catalog() as catalog, machine.fresh() as fresh:
        monkeypatch.setattr(claude_code, "glance", broken)
        catalog.complete()
        assert "claude-code:a2" in {card.name for card in catalog.cards()}
        same(catalog, fresh)


def test_whoever_finds_an_index_unfinished_says_how_much_it_read(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    with machine.catalog() as catalog:
        _announced_only(catalog, monkeypatch)
    with machine.catalog() as catalog:
        synced = catalog.sync()
        assert synced.read >= 11
        assert synced.read_bytes > 0


@pytest.mark.usefixtures("much")
def test_a_glance_is_closed_with_its_catalog(machine: Machine):
    with machine.catalog(deferred=True) as catalog:
        with catalog._local.database.lock():
            assert catalog.lines()
            glanced = catalog._local.glanced
        ended(catalog)
    assert glanced is not None
    assert glanced._database._connection is None
