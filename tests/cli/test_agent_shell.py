"""What an agent may do from its own shell, and what is left to people."""

from __future__ import annotations

from pathlib import Path

import pytest

import turnlog
from turnlog.blame.authorship import blame
from turnlog.cli.frame.agentshell import FOR_PEOPLE
from turnlog.hooks import hooked_agent, names
from turnlog.machine.process import this_process
from turnlog.rewind.coverage import Coverage
from turnlog.rewind.relay import TurnRelay, worker_of
from turnlog.session.interior import interior
from turnlog.thread.appender import appending


def told(folder: Path, *events: tuple[str, str]) -> str:
    """A session of which hooks told these; its agent is this very process."""
    with turnlog.open(folder) as home:
        if not home.exists("codex-s"):
            home.create(id="codex-s", agent="codex", workspace=".").close()
        with appending(interior(home).store, interior(home).store.open("codex-s")) as appender:
            relay = TurnRelay(
                interior(home).store,
                appender,
                Coverage(interior(home).store, appender.history, interior(home).settings),
            )
            for event, native in events:
                relay.begin(native, worker_of(this_process())) if event == "begin" else relay.end(native)
                Path(f"{native}.txt").write_text(native)
    return "codex-s"


@pytest.fixture
def session(folder: Path) -> str:
    told(folder, ("begin", "t1"))
    return told(folder, ("end", "t1"))


def test_what_cannot_be_taken_back_is_for_people(cli, session: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CLAUDECODE", "1")
    for words in (
        ["rm", "--purge", session, "--yes"], ["gc", "--quota", "1GB"], ["rewind", "--force", "--yes"],
        ["undo", "--force", "--yes"], ["hooks", "uninstall", "claude-code"],
    ):  # fmt: skip
        done = cli(*words)
        assert (done.code, done.out) == (2, ""), words
        assert "is not allowed in a shell of Claude Code" in done.err
    assert cli("gc", "--quota", "1GB", "--dry-run").code == 0
    monkeypatch.setenv("TURNLOG_ALLOW_AGENT", "1")
    assert cli("gc", "--quota", "1GB").code == 0


def test_from_inside_an_agent_the_plan_comes_first_and_then_the_word(cli, session: str, monkeypatch):
    monkeypatch.setenv("CLAUDECODE", "1")
    plan = cli("rewind")
    assert plan.code == 2
    assert "t1.txt" in plan.out
    assert "--yes" in plan.err
    assert Path("t1.txt").exists()
    assert cli("rewind", "--yes").code == 0
    assert not Path("t1.txt").exists()


def test_a_program_inside_an_agent_moves_no_file_without_the_word(cli, session: str, monkeypatch):
    monkeypatch.setenv("CLAUDECODE", "1")
    for command in ("rewind", "undo", "redo"):
        was_there = Path("t1.txt").exists()
        done = cli(command, "--json")
        assert (done.code, done.out) == (2, ""), command
        assert "--yes" in done.err
        assert Path("t1.txt").exists() == was_there
        assert cli(command, "--dry-run", "--json").json["done"] is False
        assert cli(command, "--yes", "--json").json["done"] is True


def test_an_agent_that_is_still_open_is_told_of_before_anything_is_asked(cli, session: str):
    shown = cli("rewind", "--dry-run").out
    assert "is still running and remembers this: quit it, then run" in shown
    assert "turnlog resume codex-s --exec" in shown


def test_an_agent_inside_a_run_keeps_its_turns_for_itself(folder: Path, cli, monkeypatch: pytest.MonkeyPatch):
    with turnlog.open(folder) as home:
        run = home.create(workspace=".", agent="turnlog")
        with run.turn() as turn:
            home.create(id="codex-s", agent="codex", workspace=".").close()
            with appending(interior(home).store, interior(home).store.open("codex-s")) as appender:
                relay = TurnRelay(
                    interior(home).store,
                    appender,
                    Coverage(interior(home).store, appender.history, interior(home).settings),
                )
                relay.begin("t1", worker_of(this_process()), within=turn)
                Path("a.txt").write_text("a")
                relay.end("t1")
        with home.resume("codex-s") as inside:
            begin = inside.checkpoints()[0]
            assert [(step.path, step.action) for step in inside.plan_rewind(to=begin).steps] == [("a.txt", "delete")]
        before = run.checkpoints()[0]
        assert [(step.path, step.action) for step in run.plan_rewind(to=before).steps] == [("a.txt", "delete")]
        [line] = blame(interior(home).store, "a.txt").lines
        assert line.author is not None
        assert line.author.session == "codex-s"


def test_what_an_agent_asked_for_says_which_session_asked(cli, folder: Path, session: str, monkeypatch):
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "93a31366")
    for words in (["rewind"], ["undo"], ["redo"]):
        assert cli(*words, "--yes").code == 0, words
    assert cli("rm", session).code == 0
    assert cli("restore", session).code == 0
    with turnlog.open(folder) as home, home.read(session) as found:
        notes = [note.data for note in found.entries(kind="note")]
    asked = [{"asked_by": "claude-code-93a31366", "asked": what} for what in ("rewind", "undo", "redo", "rm")]
    assert notes == asked


@pytest.mark.parametrize("name", [name for name in names() if hooked_agent(name).shell_variable])
def test_every_agents_shell_is_known(cli, session: str, monkeypatch: pytest.MonkeyPatch, name: str):
    for other in names():
        monkeypatch.delenv(hooked_agent(other).shell_variable or "X", raising=False)
    monkeypatch.setenv(hooked_agent(name).shell_variable, "1")
    done = cli("gc", "--quota", "1GB")
    assert (done.code, f"in a shell of {hooked_agent(name).title}\n" in done.err) == (2, True)


def test_what_is_refused_is_documented_by_name():
    guide = " ".join((Path(__file__).parents[2] / "docs/guide/live.md").read_text().split())
    told = guide.partition("In an agent's own shell")[2].partition("work there")[0]
    assert [what for what in FOR_PEOPLE if f"`{what}`" not in told] == []
