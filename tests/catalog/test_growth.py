"""Sessions that grow between two readings: what is read in several goes is what is read in one."""

import os
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.catalog.machine import Machine, same
from turnlog.catalog.ask import detail
from turnlog.catalog.read import own
from turnlog.catalog.read.counts import SessionCounts


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.mark.parametrize("kind", ["claude", "codex"])
def test_a_file_that_is_read_after_every_line_is_as_if_it_was_read_once(machine: Machine, kind: str):
    path: Path = getattr(machine, kind)("aaaa", 2)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("")
    for line in lines:
        with path.open("a") as file:
            file.write(line)
        with machine.catalog() as catalog, machine.fresh() as fresh:
            same(catalog, fresh)


def test_a_title_that_was_cut_off_is_gone(machine: Machine):
    path = machine.claude("aaaa", 2)
    said = path.read_text()
    with path.open("a") as file:
        file.write('{"type":"custom-title","customTitle":"A needle","sessionId":"aaaa"}\n')
    with machine.catalog() as catalog:
        assert [card.title for card in catalog.cards()] == ["A needle"]
    machine.claude("aaaa")
    with machine.catalog() as catalog, machine.fresh() as fresh:
        assert [card.title for card in catalog.cards()] == ["A needle"]
        same(catalog, fresh)
    path.write_text(said)
    with machine.catalog() as catalog, machine.fresh() as fresh:
        assert [card.title for card in catalog.cards()] == [None]
        same(catalog, fresh)


def test_a_result_belongs_to_the_call_that_was_read_before(machine: Machine):
    with turnlog.open(machine.home, checkpoints=False) as home, home.create(workspace=machine.work) as session:
        session.user("list the haystack")
        session.assistant([turnlog.ToolCall(id="call", name="Bash", input={"command": "ls"})])
        with machine.catalog() as catalog:
            catalog.sync()
        session.tool_result("call", "no needle", is_error=True)
        with machine.catalog() as catalog, machine.fresh() as fresh:
            [used] = catalog.ask(detail.tools)
            assert (used.tool, used.calls, used.errors) == ("Bash", 1, 1)
            same(catalog, fresh)


def test_a_log_that_is_damaged_where_it_grew_has_every_text_once(machine: Machine):
    machine.ours("one", 2)
    with machine.catalog() as catalog:
        catalog.sync()
    machine.ours("one", 3)
    [path] = (machine.home / "sessions").glob("*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    assert b"ours: needle4" in lines[-4]
    lines[-4] = lines[-4].replace(b"ours: needle4", b"ours: needle5")
    path.write_bytes(b"".join(lines))
    for texts in (5, 6):
        with machine.catalog() as catalog, machine.fresh() as fresh:
            assert [card.damage for card in catalog.cards()] == [1]
            hits = [hit.seq for hit in catalog.search("haystack", limit=100)]
            assert len(hits) == len(set(hits)) == texts
            same(catalog, fresh)
        machine.ours("one", 1)


@pytest.mark.parametrize("messages", range(4))
def test_counts_of_the_first_rules_are_not_taken_for_those_of_today(messages: int):
    _, _, *rest = SessionCounts().freeze()
    assert not SessionCounts.can_thaw((messages, *rest))
    assert SessionCounts.can_thaw(SessionCounts().freeze())


def test_what_is_appended_while_a_session_is_read_is_read_once(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    with turnlog.open(machine.home, checkpoints=False) as home, home.create(workspace=machine.work) as session:
        session.user("one needle")
        session.assistant("in the haystack")
        entries, texts = own._entries, ["two", "three"]

        def late(*args: Any, **more: Any) -> Any:
            while texts:
                text = texts.pop()
                session.user(text)
                session.assistant(f"{text} in the haystack")
            return entries(*args, **more)

        monkeypatch.setattr(own, "_entries", late)
        with machine.catalog() as catalog:
            catalog.sync()
        with machine.catalog() as catalog, machine.fresh() as fresh:
            [card] = catalog.cards()
            assert (card.messages, card.branches) == (6, 1)
            same(catalog, fresh)


@pytest.mark.parametrize("kind", ["claude", "codex"])
def test_a_torn_end_is_one_place_however_often_it_is_read(machine: Machine, kind: str):
    path: Path = getattr(machine, kind)("aaaa")
    with path.open("a") as file:
        file.write('{"type": "user", "mess')
    for _ in range(3):
        with machine.catalog() as catalog:
            assert [card.damage for card in catalog.cards()] == [1]
        os.utime(path)
    with path.open("a") as file:
        file.write("\n")
    getattr(machine, kind)("aaaa")
    with machine.catalog() as catalog, machine.fresh() as fresh:
        assert [card.damage for card in catalog.cards()] == [1]
        same(catalog, fresh)


def test_a_listing_names_the_reason_once(machine: Machine):
    path = machine.claude("aaaa", 2)
    with machine.catalog() as catalog:
        catalog.sync()
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3]))
    with machine.catalog() as catalog:
        assert [line.title.partition(" (")[2][:8] for line in catalog.lines()] == ["was cut:"]
