"""Titles, tags, stars, notes and the archive for sessions of other agents, which stay as they are."""

import os
import re
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import turnlog
from tests.cli.scene import Cli
from tests.cli.test_import import claude_file
from turnlog import Invalid, Set
from turnlog.catalog import Catalog
from turnlog.log.ids import MARKS
from turnlog.reader.markable import ForeignMarkable, OwnMarkable
from turnlog.session.interior import interior

ID = "00000000-0000-4000-8000-000000000001"
NAME = f"claude-code:{ID}"


@pytest.fixture
def foreign(folder: Path) -> Path:
    """A session of Claude Code about this folder."""
    place = Path(os.environ["HOME"]) / ".claude" / "projects" / "webshop"
    place.mkdir(parents=True)
    return claude_file(place, 1, os.getcwd())


def listed(cli: Cli, *words: str) -> list[dict]:
    return cli("ls", "--all", *words, "--json").json["sessions"]


def test_what_is_said_of_another_agents_session_is_listed_found_and_shown(cli: Cli, foreign: Path):
    before = foreign.read_bytes()
    assert cli("tag", NAME, "urgent", "login").out == f"session {NAME}: #urgent #login\n"
    assert cli("rename", NAME, "The blue parser").out == f"session {NAME} is now “The blue parser”\n"
    assert cli("star", NAME).code == cli("note", NAME, "ask Ann about zanzibar").code == 0
    (row,) = listed(cli, "tag:urgent", "is:starred")
    assert (row["title"], row["tags"], row["is_ours"]) == ("The blue parser", ["urgent", "login", "star"], False)
    assert "blue parser" in cli("search", "parser").out
    (hit,) = cli("search", "zanzibar", "--json").json["hits"]
    assert (hit["session"]["id"] if isinstance(hit["session"], dict) else hit["session"], hit["role"]) == (ID, "note")
    shown = cli("show", NAME).out
    assert "The blue parser" in shown
    assert "note: ask Ann about zanzibar" in shown
    assert cli("show", NAME, "--at", hit["entry"]).code == 0
    exported = cli("export", NAME, "--to", "markdown", "-o", "-").out
    assert "The blue parser" in exported
    assert "zanzibar" in exported
    assert cli("title", NAME).out == "The blue parser\n"
    assert "zanzibar" in cli("note", NAME).out
    assert foreign.read_bytes() == before


def test_what_is_taken_off_shows_what_the_agent_says(cli: Cli, foreign: Path):
    own = listed(cli)[0]["title"]
    cli("title", NAME, "Mine")
    cli("tag", NAME, "one", "two")
    os.utime(Path(os.environ["TURNLOG_HOME"]) / "sessions" / f"{MARKS}.jsonl", (1e9, 1e9))  # nobody doubts an old file
    assert listed(cli)[0]["title"] == "Mine"
    foreign.write_bytes(foreign.read_bytes() + foreign.read_bytes().splitlines(keepends=True)[-1])  # it is read again
    (row,) = listed(cli)
    assert (row["title"], row["tags"]) == ("Mine", ["one", "two"])
    cli("title", NAME, "--remove")
    assert cli("tag", NAME, "--remove", "one").out == f"session {NAME}: #two\n"
    (row,) = listed(cli)
    assert (row["title"], row["tags"]) == (own, ["two"])


def test_one_that_is_archived_is_in_no_list_until_it_is_asked_for(cli: Cli, foreign: Path):
    assert "is archived" in cli("hide", NAME).out
    assert listed(cli) == []
    assert [row["archived"] for row in listed(cli, "is:archived")] == [True]
    cli("archive", NAME, "--remove")
    assert [row["archived"] for row in listed(cli)] == [False]


def test_nothing_lists_counts_or_removes_where_it_is_kept(cli: Cli, foreign: Path):
    cli("note", NAME, "zanzibar")
    assert (Path(os.environ["TURNLOG_HOME"]) / "sessions" / f"{MARKS}.jsonl").exists()
    for words in (["--hidden"], ["is:hidden"], ["--deleted"]):
        assert MARKS not in cli("ls", "--all", *words, "--json").out
    assert len(cli("search", "zanzibar", "--json").json["hits"]) == 1
    with turnlog.open() as home:
        assert home.sessions() == []
        with pytest.raises(Invalid, match="notes of other agents' sessions"):
            home.purge(MARKS)
    assert cli("rm", MARKS).code == 2
    assert cli("gc", "--older-than", "0d", "--yes").code == 0
    assert "zanzibar" in cli("note", NAME).out
    assert cli("doctor").code == 0


def test_a_new_index_knows_it_and_so_does_one_from_a_glance(cli: Cli, foreign: Path):
    cli("title", NAME, "Mine")
    with Catalog(agents=True) as catalog:
        catalog.rebuild()
        assert [card.title for card in catalog.cards()] == ["Mine"]
    with Catalog(agents=True) as catalog:
        place = Path(catalog.path)
    for path in place.parent.glob(f"{place.name}*"):
        path.unlink()
    from turnlog.catalog import upkeep  # as if there were too much to be read at once

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(upkeep, "AT_ONCE", -1)
        patch.setattr("turnlog.catalog.background.start", lambda *_, **__: True)
        with Catalog(agents=True, deferred=True) as catalog:
            assert [(card.title, card.is_indexed) for card in catalog.cards()] == [("Mine", False)]


def test_an_import_takes_it_along_once(cli: Cli, foreign: Path):
    cli("title", NAME, "Mine")
    cli("tag", NAME, "one", "two")
    cli("note", NAME, "zanzibar")
    cli("import", NAME)
    (row,) = listed(cli, "tag:one")
    assert (row["is_ours"], row["title"], row["tags"]) == (True, "Mine", ["one", "two"])
    cli("tag", NAME, "--remove", "one")
    cli("title", NAME, "Ours")
    cli("import", NAME)
    (row,) = listed(cli)
    assert (row["title"], row["tags"]) == ("Ours", ["two"])
    assert [note["text"] for note in cli("note", NAME, "--json").json["notes"]] == ["zanzibar"]
    assert cli("show", NAME).out.count("zanzibar") == 1


def test_two_homes_bring_together_what_each_said(cli: Cli, foreign: Path, tmp_path: Path):
    other = str(tmp_path / "other")
    cli("tag", NAME, "here")
    cli("title", NAME, "Older")
    cli("--home", other, "tag", NAME, "there")
    cli("--home", other, "title", NAME, "Newer")
    cli("--home", other, "note", NAME, "zanzibar")
    for _ in range(2):
        assert cli("sync", other).code == 0
        for home in ([], ["--home", other]):
            (row,) = cli(*home, "ls", "--all", "--json").json["sessions"]
            assert (row["title"], sorted(row["tags"])) == ("Newer", ["here", "there"])
            assert len(cli(*home, "note", NAME, "--json").json["notes"]) == 1
    with turnlog.open() as home:
        assert [row.id for row in interior(home).store.listing()] == [MARKS]


_SAY = """
import sys, turnlog
from turnlog.session.interior import interior
from turnlog.thread.home.foreignmarks import mark_tag, append_marks
with turnlog.open() as home:
    for number in range(5):
        append_marks(interior(home).creator, mark_tag(sys.argv[1], f"{sys.argv[2]}{number}", True))
"""


def test_processes_may_say_something_at_once_also_when_nothing_was_said_before(cli: Cli, foreign: Path):
    running = [subprocess.Popen([sys.executable, "-c", _SAY, NAME, letter]) for letter in "abc"]
    assert [one.wait() for one in running] == [0, 0, 0]
    assert sorted(cli("tag", NAME).out.split()) == [f"{letter}{number}" for letter in "abc" for number in range(5)]


def test_tags_of_ours_stay_that_somebody_else_gave_meanwhile(session: str):
    with turnlog.open() as home, home.resume(session) as mine, home.resume(session) as theirs:
        assert OwnMarkable(mine).tag(["one"], is_on=True) == ["one"]
        assert OwnMarkable(theirs).tag(["two"], is_on=True) == ["one", "two"]


def test_what_was_said_counts_before_the_catalog_has_read_it(cli: Cli, foreign: Path):
    """While it is made, a card is older than what was said of its session."""
    with turnlog.open() as home, Catalog(agents=True) as catalog:
        card = catalog.find(NAME)
        ForeignMarkable(home, card).tag(["star", "one"], is_on=True)
        ForeignMarkable(home, card).set_title("Mine")
        ForeignMarkable(home, card).archive(True)
        later = ForeignMarkable(home, card)
        assert (later.tags, later.title, later.archived) == (["star", "one"], "Mine", True)
        assert later.tag(["star"], is_on=False) == ["one"]
        ForeignMarkable(home, card).archive(False)
        assert (later.tags, later.archived) == (["one"], False)
    assert cli("tag", NAME).out == "one\n"


def test_a_note_can_be_erased_and_is_found_no_more(cli: Cli, foreign: Path):
    cli("note", NAME, "zanzibar")
    assert cli("erase", "-s", MARKS, "--matching", "zanzibar", "--yes").code == 0
    assert cli("search", "zanzibar", "--json").json["hits"] == []
    assert "zanzibar" not in cli("show", NAME).out
    assert cli("note", NAME).out == ""


def test_a_note_has_the_time_of_this_place(process: Cli, foreign: Path, monkeypatch: pytest.MonkeyPatch):
    process("note", NAME, "zanzibar")
    at = datetime.fromisoformat(process("note", NAME, "--json").json["notes"][0]["at"])
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    here = at + timedelta(hours=5, minutes=45)
    assert process("note", NAME).out == f"{here:%Y-%m-%d %H:%M} zanzibar\n"


def test_a_note_that_would_not_travel_is_refused(cli: Cli, foreign: Path):
    done = cli("note", NAME, "x" * 5_000)
    assert done.code == 2
    assert re.search("4,000 characters, not 5,000", done.err)


def test_a_fact_of_a_name_that_nobody_knows_is_left_alone(cli: Cli, foreign: Path):
    cli("tag", NAME, "one")
    with turnlog.open() as home, home.resume(MARKS) as marks:
        marks.append(Set(key="colour claude-code:x", value=7), Set(key="alone", value=1))
    assert [row["tags"] for row in listed(cli)] == [["one"]]
