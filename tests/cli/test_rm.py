"""`turnlog rm` and `turnlog restore`."""

import json
import os
import sqlite3
from pathlib import Path

import pytest

import turnlog
from tests.cli.scene import Cli, write_session
from tests.cli.terminal import Terminal
from tests.cli.test_import import claude_file
from turnlog.catalog import Catalog
from turnlog.errors import Unavailable


def test_into_the_trash_and_back(cli: Cli, session: str, folder: Path):
    handle = session[-8:]
    done = cli("rm", handle)
    assert done.code == 0
    assert done.out == f"session {handle} is in the trash; `turnlog restore {handle}` brings it back\n"
    assert not (folder / "sessions" / f"{session}.jsonl").exists()
    assert cli("restore", handle).out == f"session {handle} is back\n"
    assert cli("title").out == "The race in conftest\n"


def test_several_at_once_or_none(cli: Cli, session: str):
    with turnlog.open() as home:
        other = write_session(home)
    done = cli("rm", session, "nobody", other)
    assert done.code == 3
    with turnlog.open() as home:
        assert len(home.sessions()) == 2
    told = cli("rm", session, other, session, "--json").json
    assert told["purged"] is False
    assert [row["id"] for row in told["sessions"]] == [session, other]
    assert [row["id"] for row in cli("restore", "--json", session, session).json["sessions"]] == [session]


def test_an_error_at_the_second_session_does_not_hide_what_became_of_the_first(cli: Cli, session: str):
    def make(text: str) -> None:
        with turnlog.open() as home, home.create(id="nightly") as made:
            made.user(text)

    make("the first")
    cli("rm", "nightly")
    make("the second")  # two of that id: which one is meant has to be said
    done = cli("rm", session, "nightly")
    assert done.code == 4
    assert done.out.startswith(f"session {session[-8:]} is in the trash")
    assert "error: session nightly: " in done.err and "; 1 session not done" in done.err
    done = cli("rm", "--purge", "--yes", "--json", session, "nightly")
    assert done.code == 3
    assert [row["id"] for row in done.json["sessions"]] == [session]
    assert [row["id"] for row in done.json["removed"]] == [session]


def test_for_good_only_when_it_is_meant(cli: Cli, session: str):
    done = cli("rm", "--purge", session)
    assert done.code == 2
    assert "--yes" in done.err
    with turnlog.open() as home:
        assert len(home.sessions()) == 1
    assert cli("rm", "--purge", "--yes", session).out == f"session {session[-8:]} was removed for good\n"
    with turnlog.open() as home:
        assert home.sessions() == []
        assert home.sessions(deleted=True) == []


def test_for_good_out_of_the_trash(cli: Cli, session: str):
    cli("rm", session)
    assert cli("rm", session).code == 3, "it is there already"
    assert cli("rm", "--purge", "--yes", session).code == 0
    assert cli("restore", session).code == 3


def test_a_name_that_was_used_again(cli: Cli):
    def make(text: str) -> None:
        with turnlog.open() as home, home.create(id="nightly") as session:
            session.user(text)

    make("the first")
    assert cli("rm", "nightly").code == 0
    make("the second")
    done = cli("restore", "nightly")
    assert done.code == 4 and "--as" in done.err
    done = cli("rm", "nightly")
    assert done.code == 4 and "deleted session" in done.err
    done = cli("rm", "--purge", "--yes", "nightly")
    assert done.code == 3 and "--deleted" in done.err
    assert cli("restore", "nightly", "--as", "old", "--json").json["sessions"] == [{"id": "old", "handle": "old"}]
    assert "the first" in cli("show", "old").out
    assert "the second" in cli("show", "nightly").out
    assert cli("restore", "nightly").code == 3
    cli("rm", "nightly")
    make("the third")
    assert cli("rm", "--purge", "--yes", "--deleted", "nightly").code == 0
    assert "the third" in cli("show", "nightly").out
    assert cli("rm", "--deleted", "nightly").code == cli("restore", "a", "b", "--as", "c").code == 2


def test_the_question_shows_what_and_no_is_no(session: str):
    with Terminal("-m", "turnlog", "rm", "--purge", session[-8:]) as terminal:
        terminal.until("remove it for good? [y/N] ")
        assert "The race in conftest" in terminal.plain
        terminal.type("n\n")
        assert terminal.end() == 1
    assert terminal.text.endswith("nothing was removed\n")
    with turnlog.open() as home:
        assert len(home.sessions()) == 1
    with Terminal("-m", "turnlog", "rm", "--purge", session[-8:]) as terminal:
        terminal.until("[y/N] ")
        terminal.type("y\n")
        assert terminal.end() == 0
    with turnlog.open() as home:
        assert home.sessions() == []


def test_forks_keep_working(cli: Cli, session: str):
    with turnlog.open() as home:
        fork = home.resume(session).fork(name="another idea").id
    assert cli("rm", "--purge", "--yes", session).code == 0
    with turnlog.open() as home:
        texts = [
            block.text for message in home.resume(fork).messages() for block in message.blocks if hasattr(block, "text")
        ]
    assert "The test is flaky, fix it" in texts


def test_nothing_by_default(cli: Cli, session: str):
    assert cli("rm").code == 2
    assert cli("restore").code == 2


def test_restore_says_what_is_not_in_the_trash(cli: Cli, session: str):
    done = cli("restore", session)
    assert done.code == 3
    assert done.err.startswith("error: no deleted session")
    assert "turnlog ls --deleted" in done.err


def test_what_is_gone_for_good_is_found_no_more(cli: Cli, session: str):
    assert cli("search", "flaky", "--json").json["hits"]
    assert cli("rm", "--purge", "--yes", session).code == 0
    catalog = sqlite3.connect(Catalog(os.environ["TURNLOG_HOME"]).path)
    try:
        assert catalog.execute("SELECT count(*) FROM texts").fetchone() == (0,), (
            "at once, and not when it is asked next"
        )
    finally:
        catalog.close()
    assert cli("search", "flaky", "--json").json["hits"] == []


def test_what_stays_of_a_purged_session_is_said_and_can_go_as_well(cli: Cli, session: str):
    with turnlog.open() as home:
        home.resume(session).fork(id="the-fork")
    done = cli("rm", "--purge", "--yes", session)
    assert "fork the-fork stayed: it builds on entries up to" in done.out
    assert "--forks removes it as well" in done.out
    with turnlog.open() as home:
        home.resume("the-fork").fork(id="another")
    told = cli("rm", "--purge", "--yes", "--forks", "the-fork", "another", "--json").json
    assert [(row["id"], row["kind"]) for row in told["removed"]] == [("the-fork", "session"), ("another", "fork")]
    assert told["left"] == []
    assert cli("rm", "--forks", "x").code == 2


def test_an_ambiguous_word_lists_what_is_in_the_trash(cli: Cli, folder: Path):
    with turnlog.open() as home:
        for name in ("same-1", "same-2"):
            home.create(id=name).user("hi")
    assert cli("rm", "same-1", "same-2").code == 0
    done = cli("restore", "same", "--json")
    error = json.loads(done.err)["error"]
    assert (done.code, error["hint"]) == (3, "give more of the id")
    assert {one["name"] for one in error["candidates"]} == {"same-1", "same-2"}
    assert "same-2" in cli("restore", "same").err


@pytest.mark.parametrize("name", ["claude-code:{}", "claude-code:{:.9}", "{}", "{:.9}"])
def test_restore_takes_the_id_of_an_agent_that_rm_takes(cli: Cli, folder: Path, name: str):
    claude_file(Path(os.environ["HOME"]) / ".claude" / "projects" / "webshop", 1, str(Path.cwd()))
    word = name.format("00000000-0000-4000-8000-000000000001")
    assert cli("import", "--all").code == 0
    assert cli("rm", word).code == 0
    assert cli("restore", word).code == 0
    assert cli("ls", "--deleted", "--json").json["sessions"] == []
    assert cli("rm", word).code == 0
    assert cli("rm", "--purge", "--deleted", "--yes", word).code == 0
    again = cli("restore", word)
    hint = "`turnlog ls --deleted` shows what is in the trash"
    assert (again.code, again.err) == (3, f"error: no deleted session {word!r}\nhint: {hint}\n")


@pytest.mark.parametrize(
    ("words", "receipt"),
    [
        (["erase", "-s", "talk", "3", "--yes"], "erased in session talk: 3\n"),
        (["rm", "--purge", "talk", "--yes"], "session talk was removed for good\n"),
        (["gc", "--older-than", "0d", "--yes"], "1 session was removed for good\n"),
    ],
)
def test_the_receipt_comes_before_an_index_that_cannot_be_changed(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], receipt: str
):
    def fail(self: Catalog) -> None:
        raise Unavailable("database is locked")

    with turnlog.open() as home:
        home.create(id="talk").user("hi")
    monkeypatch.setattr(Catalog, "forget_purged", fail)
    done = cli(*words)
    assert (done.code, done.err) == (8, "error: database is locked\n")
    assert done.out.startswith(receipt)
