"""`turnlog hooks`."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.machine import claude_session, settle
from tests.cli.scene import Cli
from tests.cli.terminal import Terminal
from tests.live.test_hook import OWN
from turnlog.hooks.trace import note


@pytest.fixture
def person(tmp_path: Path) -> Path:
    folder = tmp_path / "person"
    (folder / ".claude").mkdir(parents=True)
    (folder / ".codex").mkdir()
    return folder


def test_without_a_terminal_it_has_to_be_said_for_whom(cli: Cli, person: Path):
    done = cli("hooks", "install", "--anyway")
    assert done.code == 2
    assert "claude-code, codex; or --all" in done.err
    assert list((person / ".claude").iterdir()) == []


@pytest.mark.parametrize("named", [[], ["claude-code"]])
def test_from_the_environment_of_a_project_it_refuses_before_it_asks(cli: Cli, person: Path, named: list[str]):
    done = cli("hooks", "install", *named)
    assert done.code == 7
    assert "not permanent" in done.err
    assert "--anyway" in done.err
    assert list((person / ".claude").iterdir()) == []


def test_in_and_out(cli: Cli, person: Path):
    settings = person / ".claude/settings.json"
    settings.write_text('{"model": "opus"}\n')
    shown = cli("hooks", "install", "--all", "--anyway", "--dry-run")
    assert "would be written" in shown.out
    assert '+  "hooks"' in shown.out or '+{"model"' in shown.out
    assert settings.read_text() == '{"model": "opus"}\n'
    done = cli("hooks", "install", "--all", "--anyway")
    assert done.code == 0, done.err
    assert "~/.claude/settings.json written" in done.out
    assert "`/hooks`" in done.out
    assert "hooked already" in cli("hooks", "install", "--all", "--anyway").out
    rows = {row["agent"]: row for row in json.loads(cli("hooks", "--json").out)["agents"]}
    assert [name for name, row in rows.items() if row["installed"]] == ["claude-code", "codex"]
    assert rows["codex"]["trusted"] is False
    assert rows["claude-code"]["trusted"] is None
    assert "not trusted" in cli("hooks", "status").out
    done = cli("hooks", "install", "codex", "--anyway", "--trust")
    assert done.out.count("trusted: test -x ") == 3
    assert cli("hooks", "uninstall", "--all").code == 0
    assert settings.read_text() == '{"model": "opus"}\n'
    assert list((person / ".codex").iterdir()) == []


def test_of_several_all_or_none(cli: Cli, person: Path):
    (person / ".claude/settings.json").write_text("{}")
    (person / ".codex/hooks.json").write_text('{"hooks": {},}')
    done = cli("hooks", "install", "--all", "--anyway")
    assert done.code == 6
    assert "hooks.json, line 1, column 13: a comma too many" in done.err
    assert "nothing was changed" in done.err
    assert (person / ".claude/settings.json").read_text() == "{}"


def test_an_agent_that_nobody_knows(cli: Cli):
    done = cli("hooks", "install", "nobody", "--anyway")
    assert done.code == 3
    assert "claude-code, codex, copilot-cli" in done.err


def test_on_a_terminal_it_asks_for_each(person: Path, cli: Cli):
    with Terminal("-m", "turnlog", "hooks", "install", "--anyway") as terminal:
        terminal.until("Claude Code: add hooks to ~/.claude/settings.json? [y/N]")
        terminal.type("y\n")
        terminal.until("Codex: add hooks to")
        terminal.type("\n")
        assert terminal.end() == 0
    assert (person / ".claude/settings.json").exists()
    assert list((person / ".codex").iterdir()) == []


def test_for_a_project_it_asks_about_the_file_that_is_written(person: Path, cli: Cli):
    for action, asked in (("install", "add hooks to"), ("uninstall", "take our hooks out of")):
        with Terminal("-m", "turnlog", "hooks", action, "--project", "--anyway", columns=400) as terminal:
            terminal.until(f"Claude Code: {asked} {Path.cwd()}/.claude/settings.json? [y/N]")
            terminal.type("y\n")
            if action == "install":
                terminal.until(f"Codex: {asked} {Path.cwd()}/.codex/")
                terminal.type("\n")
            assert terminal.end() == 0, terminal.text
        assert (Path.cwd() / ".claude/settings.json").exists() is (action == "install")
    assert list((person / ".claude").iterdir()) == []


def test_it_is_offered_until_somebody_looked(process: Cli, person: Path, monkeypatch: pytest.MonkeyPatch):
    claude_session(person, str(Path.cwd()), "aaaaaaaa-1111-4222-8333-444444444444", "Fix it")
    settle(process)
    assert "Turns of 2 agents cannot be taken back yet" in process().out
    monkeypatch.setenv("TURNLOG_OFFERS", "off")
    assert "cannot be taken back" not in process().out
    monkeypatch.delenv("TURNLOG_OFFERS")
    process("hooks", "status")
    assert "cannot be taken back" not in process().out


def test_the_home_that_was_named_is_the_one_that_the_hook_fills(cli: Cli, person: Path, tmp_path: Path):
    place, named = tmp_path / "shop", tmp_path / "its home"
    place.mkdir()
    done = cli("hooks", "install", "claude-code", "--anyway", "--home", str(named))
    assert done.code == 0, done.err
    settings = json.loads((person / ".claude/settings.json").read_text())
    command = settings["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"]
    payload = {"session_id": "s1", "prompt_id": "p1", "prompt": "go", "cwd": str(place)}
    ran = subprocess.run(
        ["sh", "-c", command.replace("PYTHONPATH=", f"PYTHONPATH={OWN}")], input=json.dumps(payload).encode(),
        env={"HOME": str(person), "PATH": "/usr/bin:/bin"}, capture_output=True, check=True,
    )  # fmt: skip
    assert (ran.stdout, ran.stderr) == (b"", b"")
    rows = json.loads(cli("ls", "--all", "--home", str(named), "--json").out)["sessions"]
    assert [row["id"] for row in rows] == ["claude-code-s1"]
    assert not (person / ".turnlog/sessions").exists()
    assert f"its turns go to {named}" in cli("hooks", "status", "--home", str(person / ".turnlog")).out
    assert "its turns go" not in cli("hooks", "status", "--home", str(named)).out


def test_newer_versions_of_pi_need_trust_for_the_hooks_of_a_project(cli: Cli, person: Path):
    (person / ".pi/agent").mkdir(parents=True)
    assert "only in a project that you trust" in cli("hooks", "install", "pi", "--anyway", "--project").out
    assert "only in a project that you trust" in cli("hooks", "status").out
    assert cli("hooks", "uninstall", "pi", "--project").code == 0


@pytest.mark.parametrize(("event", "less"), [("UserPromptSubmit", "none that ended"), ("Stop", "none that began")])
def test_a_version_that_tells_less_is_noticed(cli: Cli, person: Path, event: str, less: str):
    home = os.environ["TURNLOG_HOME"]
    for _ in range(4):
        note(home, "codex", event, "s", 0.0)
    assert {row["tells_less"] for row in cli("hooks", "status", "--json").json["agents"]} == {None}
    note(home, "codex", event, "s", 0.0)
    told = {row["agent"]: row["tells_less"] for row in cli("hooks", "status", "--json").json["agents"]}
    assert less in told["codex"]
    assert told["claude-code"] is None
    note(home, "codex", "Stop" if event != "Stop" else "UserPromptSubmit", "s", 0.0)
    assert {row["tells_less"] for row in cli("hooks", "status", "--json").json["agents"]} == {None}
