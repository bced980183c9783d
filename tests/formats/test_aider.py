"""aider's chat history: what a real one says, and how it is found and grows where it lies."""

from __future__ import annotations

import shutil
from pathlib import Path
from time import tzset

import pytest
from msgspec.structs import replace

import turnlog
from tests.catalog.machine import Machine
from turnlog import Message, Note, Text, Usage
from turnlog.formats import Record, added, format_of
from turnlog.formats.aider import FORMAT
from turnlog.log.entry import Spent

SHOP = Path(__file__).parent / "agents" / "aider" / "shop"
FILE = ".aider.chat.history.md"


def entries(path: Path) -> dict[str, list[object]]:
    form = format_of("aider")
    return {
        source.key: [step.entry for step in form.read(source).steps if isinstance(step, Record)]
        for source in form.find(str(path))
    }


def said(found: list[object]) -> list[tuple[str, str]]:
    return [
        (entry.role, "".join(block.text for block in entry.blocks if isinstance(block, Text)))
        for entry in found
        if isinstance(entry, Message)
    ]


def test_two_chats_of_one_file():
    first, second = entries(SHOP).values()
    (typed, answer, *_) = said(first)
    assert typed == ("user", "add a greeting\nin a file of its own")
    assert answer[0] == "assistant"
    assert ">>>>>>> REPLACE" in answer[1]
    quoted = "It says:\n\n> a quoted line\n\n```text\n> in code\n```\nThat is all."
    assert said(second) == [
        ("user", "what does the readme say?"),
        ("assistant", quoted),
        ("user", "and now in one line"),
        ("assistant", quoted),
    ]
    notes = [entry.text for entry in second if isinstance(entry, Note)]
    assert [note for note in notes if note[0] in "/!"] == [
        "/add README.md",
        "/ask what does the readme say?",
        "/tokens",
        "!ls",
        "/exit",
    ]
    spent = [entry for entry in second if isinstance(entry, Spent)]
    assert [(one.usage, one.model) for one in spent] == [
        (Usage(input_tokens=2600, output_tokens=76, cost_micros=7300), "openai/gpt-4o")
    ] * 2


def test_caches_are_counted_apart(tmp_path: Path):
    report = "> Tokens: 12k sent, 3.5k cache write, 500 cache hit, 1.2k received.  \n"
    (tmp_path / FILE).write_text(f"# aider chat started at 2026-01-02 03:04:05\n\n#### hi  \n\nhello\n\n{report}")
    [(_, _, _, spent)] = entries(tmp_path).values()
    assert isinstance(spent, Spent)
    assert spent.usage == Usage(
        input_tokens=8000, cache_write_tokens=3500, cache_read_tokens=500, output_tokens=1200, cost_micros=None
    )


def test_chats_of_one_second_are_two(tmp_path: Path):
    start = "# aider chat started at 2026-01-02 03:04:05\n\n"
    (tmp_path / FILE).write_text(
        f"{start}#### one  \n\n{start}#### two  \n\n# aider chat started at 2026-99-99 03:04:05\n"
    )
    found = entries(tmp_path)
    assert list(found) == ["2026-01-02T03:04:05", "2026-01-02T03:04:05.2", "2026-99-99T03:04:05"]
    assert [said(one) for one in found.values()] == [[("user", "one")], [("user", "two")], []]


@pytest.mark.parametrize("time", ["0001-01-01 00:00:00", "9999-12-31 23:59:59", "1000-01-01 00:00:00"])
@pytest.mark.parametrize("zone", ["UTC+14", "UTC-14"])
def test_a_chat_of_a_time_that_no_log_takes_is_read_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time: str, zone: str
):
    monkeypatch.setenv("TZ", zone)
    tzset()
    (tmp_path / FILE).write_text(f"# aider chat started at {time}\n\n#### one  \n\nhello\n\n")
    try:
        with turnlog.open("memory:") as home:
            [done] = home.import_sessions(tmp_path, agent="aider")
            assert (done.added, done.problems) == (2, [])
    finally:
        monkeypatch.undo()
        tzset()


def test_it_is_found_in_the_project_and_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    machine = Machine(tmp_path, monkeypatch)
    project = tmp_path / "shop"
    shutil.copytree(SHOP, project)
    monkeypatch.chdir(project)
    with machine.catalog() as catalog:
        assert {card.turns for card in catalog.cards() if card.agent == "aider"} == {1, 2}
        with (project / FILE).open("a") as file:
            file.write("\n#### tell me about zebras  \n\nThey have stripes.\n\n")
            file.write("# aider chat started at 2026-12-01 10:00:00\n\n#### and okapis  \n\nToo.\n")
    monkeypatch.chdir(tmp_path)
    with machine.catalog() as catalog:
        assert [hit.card.turns for hit in catalog.search("zebras")] == [3]
        assert sorted(card.turns for card in catalog.cards() if card.agent == "aider") == [1, 1, 3]


def test_a_history_that_cannot_be_opened_for_its_stamps_is_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def gone(path: str) -> dict[str, str]:
        raise FileNotFoundError(path)

    machine = Machine(tmp_path, monkeypatch)
    shutil.copytree(SHOP, tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    form = replace(FORMAT, watch=replace(FORMAT.watch, stamps=gone))
    with added("aider", form), machine.catalog() as catalog:
        assert {card.turns for card in catalog.cards() if card.agent == "aider"} == {1, 2}
