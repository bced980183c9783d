"""Crush: what its database says, as far as it can be read; and which databases there are."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.catalog.machine import Machine
from tests.formats.agents.composed import INNER, ROOM, crush
from tests.formats.test_small_agents import bring, seen, started, words
from turnlog import Home, Image, Message, Note, ToolResult
from turnlog.formats import Places, Source, format_of
from turnlog.log.part import Spawned

FORMAT = format_of("crush")


@pytest.fixture
def home() -> Iterator[Home]:
    with turnlog.open("memory:") as home:
        yield home


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The database of a project."""
    path = tmp_path / "orchard" / ".crush" / "crush.db"
    crush(path)
    return path


def change(database: Path, sql: str, *values: Any) -> None:
    with closing(sqlite3.connect(database)) as base:
        base.execute(sql, values)
        base.commit()


def test_it_is_read_without_touching_it(home: Home, database: Path):
    before = database.read_bytes()
    main, inner = bring(home, database)
    assert [path.name for path in database.parent.iterdir()] == ["crush.db"]
    assert database.read_bytes() == before
    with home.resume(main.id) as session:
        assert seen(session) == [
            ("user", "There is one file."), ("user", "$ git status\nclean\n"), ("call", "agent"), ("result", "42 "),
            ("assistant", "It broke."),
        ]  # fmt: skip
        assert (session.title, session.workspace) == ("Files of the orchard", str(database.parent.parent))
        assert (session.get("model"), session.get("provider")) == ("claude-sonnet-4-5", "anthropic")
        assert session.usage().own == turnlog.Usage(cost_micros=12_300)
        first, *_, last = session.messages()
        assert first.at == datetime(2026, 9, 21, 14, 13, 21, tzinfo=UTC)  # seconds, not milliseconds
        assert isinstance(first.blocks[1], Image)
        assert (last.stop, last.error) == ("error", {"message": "overloaded", "details": "529"})
        said = [block for entry in session.entries() if isinstance(entry, Message) for block in entry.blocks]
        assert [block.details for block in said if isinstance(block, ToolResult)] == [{"description": "list"}, None]
    with home.resume(inner.id) as child:
        assert started(child).spawned == Spawned(main.id, "toolu_2")
        assert child.usage().own == turnlog.Usage()  # its cost is in that of the other


def test_an_answer_that_is_being_written_is_a_note_until_it_has_its_end(home: Home, database: Path):
    parts = [{"type": "text", "data": {"text": "half an"}}]
    change(
        database,
        "insert into messages (id, session_id, role, parts, created_at) values ('a5', ?, 'assistant', ?, 1790000008)",
        ROOM,
        json.dumps(parts),
    )
    main = bring(home, database)[0]
    with home.resume(main.id) as session:
        [note] = [entry for entry in session.entries() if isinstance(entry, Note)]
        assert note.text == "an answer without its end: half an"
        assert words(session.messages()[-1]) == "It broke."
    parts = [{"type": "text", "data": {"text": "half an answer"}}, {"type": "finish", "data": {"reason": "end_turn"}}]
    change(database, "update messages set parts = ? where id = 'a5'", json.dumps(parts))
    bring(home, database)
    with home.resume(main.id) as session:
        assert words(session.messages()[-1]) == "half an answer"


def test_rows_that_are_broken_cost_themselves(home: Home, database: Path):
    change(database, "update messages set parts = '[{' where id = 'a2'")
    change(database, "update messages set role = 'oracle' where id = 'u2'")
    main = bring(home, database)[0]
    told = ["parts that are no list", "a message of the unknown role 'oracle': kept as a note"]
    assert [problem.what for problem in main.problems] == told
    with home.resume(main.id) as session:
        assert words(session.messages()[-1]) == "It broke."


@pytest.mark.parametrize("value", [None, 1, "x", [], {}, [[]], -1e300, True, "\udcff"[:0], {"type": {}}])
def test_values_of_another_kind_cost_what_they_are_in(database: Path, value: Any):
    chance = random.Random(7)
    with closing(sqlite3.connect(database)) as base:
        rows = base.execute("select id, parts from messages").fetchall()
    for id, parts in rows:
        changed = json.loads(parts)
        part = chance.choice(changed)
        part["data"][chance.choice(list(part["data"]))] = value
        change(database, "update messages set parts = ? where id = ?", json.dumps(changed), id)
    with turnlog.open("memory:") as other:
        assert len(bring(other, database)) == 2


def test_a_database_that_is_damaged_gives_problems_and_nothing_else(database: Path):
    data, chance = database.read_bytes(), random.Random(11)
    for _ in range(30):
        at, size = chance.randrange(len(data)), chance.randrange(1, 400)
        database.write_bytes(chance.choice([data[:at], data[:at] + chance.randbytes(size) + data[at + size :]]))
        with turnlog.open("memory:") as other:
            assert all(problem.what for item in bring(other, database) for problem in item.problems)


def test_the_list_of_projects_leads_to_databases_and_a_new_one_is_found(machine: Machine, tmp_path: Path):
    share = machine.user / ".local" / "share" / "crush"
    share.mkdir(parents=True)
    folders = [tmp_path / name / ".crush" for name in ("one", "two", "gone")]
    for folder in folders[:2]:
        crush(folder / "crush.db")
    change(folders[1] / "crush.db", "update sessions set id = 'other' where id = ?", ROOM)

    def write(*places: Any) -> None:
        projects = [{"path": "/x", "data_dir": place, "last_accessed": "2026-09-21T10:00:00Z"} for place in places]
        (share / "projects.json").write_text(json.dumps({"projects": projects}))

    write(str(folders[0]), str(folders[2]), "relative", 7, "/nul\0", None)
    assert FORMAT.homes(Places(home=str(machine.user)))[0] == str(share)
    assert [source.key for source in FORMAT.find(str(share))] == [ROOM, INNER]
    with machine.catalog() as catalog:
        assert [card.id for card in catalog.cards()] == [ROOM]
    write(str(folders[0]), str(folders[1]))
    with machine.catalog() as catalog:
        assert {card.id for card in catalog.cards()} == {ROOM, "other"}
        assert {card.own.cost_micros for card in catalog.cards()} == {12_300}
    shutil.rmtree(folders[0])


def test_a_session_that_changed_within_the_second_is_read_again(machine: Machine, tmp_path: Path):
    crush(tmp_path / "one" / ".crush" / "crush.db")
    path = tmp_path / "one" / ".crush" / "crush.db"
    before = FORMAT.watch.stamps(str(path)) if FORMAT.watch.stamps else {}
    change(path, "update messages set parts = replace(parts, 'It broke.', 'It broke again.') where id = 'a4'")
    after = FORMAT.watch.stamps(str(path)) if FORMAT.watch.stamps else {}
    assert [key for key in after if after[key] != before[key]] == [ROOM]


def test_a_key_that_is_not_there_is_an_empty_session(database: Path):
    reading = FORMAT.read(Source("crush", str(database), "nobody"))
    assert (reading.header.id, list(reading.steps)) == ("nobody", [])
