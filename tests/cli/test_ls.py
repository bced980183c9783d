"""`turnlog ls`."""

import time
from pathlib import Path

import turnlog
from tests.cli.scene import Cli, write_session


def test_the_newest_session_comes_first(cli: Cli, folder: Path):
    with turnlog.open() as home:
        old = home.create(title="old")
        new = home.create(title="new")
        time.sleep(0.002)  # times have milliseconds
        old.note("later")
        done = cli("ls")
    head, *rows = done.out.splitlines()
    assert done.code == 0
    assert head.split() == ["SESSION", "LAST", "ENTRY", "SEQ", "AGENT", "WORKSPACE", "TITLE"]
    assert [row.split()[0] for row in rows] == [old.handle, new.handle]
    assert rows[0].endswith("old")


def test_a_changed_title_is_shown(cli: Cli, session: str):
    assert "The race in conftest" in cli("ls").out


def test_hidden_sessions_and_subagents_only_with_all(cli: Cli, folder: Path):
    with turnlog.open() as home:
        main = home.create(title="main")
        home.create(title="secret", hidden=True)
        main.spawn(agent="explorer", title="child")
    assert {row["title"] for row in cli("ls", "--json").json["sessions"]} == {"main"}
    assert {row["title"] for row in cli("ls", "--all", "--json").json["sessions"]} == {"main", "secret", "child"}
    text = cli("ls", "--all").out
    assert "(hidden)" in text
    assert "(subagent)" in text


def test_deleted_sessions_are_listed_apart(cli: Cli, session: str):
    with turnlog.open() as home:
        home.delete(session)
    assert cli("ls", "--json").json["sessions"] == []
    assert [row["id"] for row in cli("ls", "--deleted", "--json").json["sessions"]] == [session]


def test_limit_and_workspace_narrow_it_down(cli: Cli, tmp_path: Path, folder: Path):
    with turnlog.open() as home:
        here = write_session(home)
        there = write_session(home, workspace=tmp_path)
    assert [row["id"] for row in cli("ls", "--limit", "1", "--json").json["sessions"]] == [there]
    assert [row["id"] for row in cli("ls", "--workspace", ".", "--json").json["sessions"]] == [here]


def test_a_fork_says_whose(cli: Cli, session: str):
    with turnlog.open() as home:
        home.resume(session).fork(name="another idea")
    assert f"(fork of {session[-8:]})" in cli("ls").out


def test_an_empty_home_is_no_error_and_no_data(cli: Cli):
    done = cli("ls")
    assert (done.code, done.out) == (0, "")
    assert done.err == "no sessions\n"
    assert cli("ls", "--json").json == {"version": 1, "sessions": []}


def test_a_session_with_a_damaged_first_line_stays_listed(cli: Cli, log: Path):
    log.write_bytes(b"\0" * 100 + log.read_bytes()[100:])
    assert "(first line damaged)" in cli("ls").out


def test_a_narrow_screen_cuts_the_title(cli: Cli, session: str, monkeypatch):
    monkeypatch.setenv("COLUMNS", "72")
    lines = cli("ls").out.splitlines()
    assert max(map(len, lines)) <= 72
    assert lines[1].endswith("…")


def test_looking_creates_nothing(cli: Cli, folder: Path):
    cli("ls")
    cli("show")
    cli("doctor")
    assert not folder.exists()
