"""`turnlog` alone."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import turnlog
from tests.cli.machine import claude_session, settle, three_agents
from tests.cli.scene import Cli, write_session
from tests.cli.terminal import Terminal

ID = "aaaaaaaa-1111-4222-8333-444444444444"


def test_the_first_screen(folder: Path, tmp_path: Path, process: Cli, monkeypatch: pytest.MonkeyPatch):
    """All of it, at 80 columns; what says nothing is left out."""
    now = datetime.now(UTC)
    person, here = tmp_path / "person", str(tmp_path / "person/code/shop")
    Path(here).mkdir(parents=True)
    monkeypatch.chdir(here)
    recent = ("Fix the flaky checkout test", "hi", "Why is the build slow?")
    for number, text in enumerate(recent):
        claude_session(
            person, here, f"{number:08x}{ID[8:]}", text, at=(now - timedelta(minutes=20 + number)).isoformat()
        )
    old = now - timedelta(days=400)
    for number in range(4):
        at = (old + timedelta(minutes=number)).isoformat()
        claude_session(person, here, f"b{number:07x}{ID[8:]}", f"Older work {number}", at=at)
    claude_session(person, "/home/ada/other", f"c0000000{ID[8:]}", "Elsewhere", at=old.isoformat())
    settle(process)
    with Terminal("-m", "turnlog", columns=80) as terminal:
        assert terminal.end() == 0
    began = old.astimezone()
    assert terminal.plain.splitlines() == [
        f"8 sessions of claude-code since {began.day} {began:%B %Y}, read where they lie",
        "$25 this month · $66 in all, at API prices              turnlog usage",
        "Turns of Claude Code cannot be taken back yet           turnlog hooks install",
        "",
        "~/code/shop · newest of 7",
        " 00000000  20m ago   claude-code  $8.25  Fix the flaky checkout test",
        " 00000001  21m ago   claude-code  $8.25",
        " 00000002  22m ago   claude-code  $8.25  Why is the build slow?",
        " b0000003  13mo ago  claude-code  $8.25  Older work 3",
        " b0000002  13mo ago  claude-code  $8.25  Older work 2",
        "",
        " turnlog resume   go on        turnlog search WORDS   find anything",
    ]


def test_somebody_new_is_told_what_was_found_and_what_to_do(folder: Path, tmp_path: Path, process: Cli):
    three_agents(tmp_path / "person", Path.cwd())
    done = process()
    assert done.code == 0, done.err
    assert " sessions of 3 agents since 15 November, read where they lie\n" in done.out
    for command in ("turnlog usage", "turnlog search WORDS", "turnlog resume"):
        assert f" {command}" in done.out
    assert not (folder / "sessions").exists()


def test_what_it_says_to_type_works(folder: Path, tmp_path: Path, process: Cli):
    claude_session(tmp_path / "person", "/home/ada/other", ID, "the flaky test")
    out = process().out
    assert f"No session in {Path.cwd()} yet" in out
    lines = [line.split("   ")[0] for line in out.splitlines() if line.startswith(" turnlog resume")]
    assert process(*lines[0].split()[1:]).code == 0, lines


def test_a_session_of_a_folder_below_is_named(folder: Path, tmp_path: Path, process: Cli):
    below = str(Path.cwd() / "packages/api")
    claude_session(tmp_path / "person", below, ID, "the flaky test")
    assert f" turnlog resume claude-code:{ID}   go on" in process().out


@pytest.mark.parametrize(("id", "typed"), [("--exec", "claude-code:--exec"), ("a;b", "'a;b'")])
def test_what_is_to_be_typed_is_one_word_that_is_no_option(
    folder: Path, tmp_path: Path, process: Cli, id: str, typed: str
):
    """Another agent's file may be called anything."""
    claude_session(tmp_path / "person", "/home/ada/other", id, "Find zanzibar", at=datetime.now(UTC).isoformat())
    settle(process)
    with Terminal("-m", "turnlog", columns=80) as terminal:
        assert terminal.end() == 0
    assert f" turnlog resume {typed}   go on" in terminal.plain
    with Terminal("-m", "turnlog", "search", "zanzibar", columns=80) as terminal:
        assert terminal.end() == 0
    assert f"turnlog show {typed} --at" in terminal.plain
    assert f"turnlog resume {typed}\n" in terminal.plain.replace("\r", "")


def test_this_folder_comes_first(folder: Path, session: str, process: Cli):
    with turnlog.open() as home:
        write_session(home, workspace="/tmp/elsewhere", title="Elsewhere")
    out = process().out
    assert "The race in conftest" in out
    assert "Elsewhere" not in out
    assert out.startswith("2 sessions of my-agent since ")
    assert "read where they lie" not in out


def test_an_empty_machine(folder: Path, process: Cli):
    done = process()
    assert done.code == 0
    assert "no sessions yet" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert "turnlog demo" in done.out


def test_help_is_still_help(process: Cli):
    assert process("--help").out.startswith("Usage: turnlog ")


def test_another_home(session: str, tmp_path: Path, process: Cli):
    assert "no sessions yet" in process("--home", str(tmp_path / "nowhere")).out


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_its_tables_fit(folder: Path, tmp_path: Path, process: Cli, columns: int):
    three_agents(tmp_path / "person", Path.cwd())
    settle(process)
    with Terminal("-m", "turnlog", columns=columns) as terminal:
        assert terminal.end() == 0
    rows = [line for line in terminal.plain.splitlines() if " ago " in line or line.startswith("SESSION")]
    assert rows
    assert max(map(len, rows)) <= columns


def test_what_nobody_can_go_on_with_is_not_offered(folder: Path, process: Cli):
    assert process("run", "--", "true").code == 0
    out = process().out
    assert " turnlog resume" not in out
    assert " turnlog diff " in out
    assert process("diff").code == 0


def test_what_has_no_price_is_said_in_words(folder: Path, tmp_path: Path, process: Cli):
    path = claude_session(tmp_path / "person", "/home/ada", ID, "one", at=datetime.now(UTC).isoformat())
    path.write_text(path.read_text().replace("claude-sonnet-4-5", "nobody-knows-1"))
    assert "no price is known for what was spent " in process().out
    claude_session(tmp_path / "person", "/home/ada", f"b{ID[1:]}", "two", at="2025-11-15T10:00:00.000Z")
    assert "no price known this month · $8.25+ in all, at API prices" in process().out


def test_sessions_that_are_not_listed_are_there_all_the_same(cli: Cli, session: str):
    cli("archive", session)
    assert "1 session, hidden or archived: `turnlog ls --all --hidden`." in cli().out
    assert [row["id"] for row in cli("ls", "--all", "--hidden", "--json").json["sessions"]] == [session]
