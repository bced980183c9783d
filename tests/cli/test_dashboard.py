"""`turnlog` alone."""

from pathlib import Path

import pytest

import turnlog
from tests.cli.machine import claude_session, settle, three_agents
from tests.cli.scene import Cli, write_session
from tests.cli.terminal import Terminal

ID = "aaaaaaaa-1111-4222-8333-444444444444"


def test_somebody_new_is_told_what_was_found_and_what_to_do(folder: Path, tmp_path: Path, process: Cli):
    three_agents(tmp_path / "person", Path.cwd())
    done = process()
    assert done.code == 0, done.err
    assert " sessions on this machine: " in done.out
    for agent in ("claude-code", "codex", "gemini-cli"):
        assert f" of {agent}" in done.out
    assert "read where they lie; nothing was copied or changed" in done.out
    for command in ("turnlog show", "turnlog search WORDS", "turnlog resume", "turnlog usage", "turnlog --help"):
        assert f"  {command} " in done.out
    assert not (folder / "sessions").exists()


def test_what_it_says_to_type_works(folder: Path, tmp_path: Path, process: Cli):
    claude_session(tmp_path / "person", "/home/ada/other", ID, "the flaky test")
    out = process().out
    assert "the newest elsewhere" in out
    lines = [line.split("  ")[1] for line in out.splitlines() if line.startswith("  turnlog show")]
    assert process(*lines[0].split()[1:]).code == 0, lines


def test_a_session_of_a_folder_below_is_named(folder: Path, tmp_path: Path, process: Cli):
    below = str(Path.cwd() / "packages/api")
    claude_session(tmp_path / "person", below, ID, "the flaky test")
    assert f"  turnlog show claude-code:{ID}  " in process().out


def test_this_folder_comes_first_and_the_cost_of_today(folder: Path, session: str, process: Cli):
    with turnlog.open() as home:
        write_session(home, workspace="/tmp/elsewhere", title="Elsewhere")
    out = process().out
    assert "The race in conftest" in out
    assert out.startswith("2 sessions on this machine: 2 of my-agent\ntoday ")
    assert "nothing was copied" not in out


def test_an_empty_machine(folder: Path, process: Cli):
    done = process()
    assert done.code == 0
    assert "no sessions yet" in done.out
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
    assert "  turnlog resume" not in out
    assert "  turnlog diff " in out
    assert process("diff").code == 0


def test_few_agents_are_all_named(folder: Path, tmp_path: Path, process: Cli):
    with turnlog.open() as home:
        for number in range(6):
            home.create(agent=f"agent-{number}", workspace=".")
        home.create(agent="agent-0", workspace=".")
    first = process().out.splitlines()[0]
    assert first.startswith("7 sessions on this machine: 2 of agent-0, 1 of ")
    assert first.endswith(", 2 of 2 others")
