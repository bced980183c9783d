"""`turnlog mcp install`, `uninstall` and `status`. What the server says is in `tests/mcp`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.scene import Cli
from tests.cli.terminal import Terminal


@pytest.fixture
def person(tmp_path: Path) -> Path:
    folder = tmp_path / "person"
    (folder / ".claude").mkdir(parents=True)
    (folder / ".codex").mkdir()
    return folder


def test_in_and_out(cli: Cli, person: Path, folder: Path):
    settings = person / ".claude.json"
    settings.write_text('{"numStartups": 1}\n')
    shown = cli("mcp", "install", "--all", "--anyway", "--dry-run")
    assert "would be written" in shown.out
    assert settings.read_text() == '{"numStartups": 1}\n'
    done = cli("mcp", "install", "--all", "--anyway")
    assert done.code == 0, done.err
    assert "its model sees mcp__turnlog__search_sessions" in done.out
    entry = json.loads(settings.read_text())["mcpServers"]["turnlog"]
    assert (entry["type"], entry["args"], entry["env"]) == ("stdio", ["mcp"], {"TURNLOG_HOME": str(folder)})
    assert "has it already" in cli("mcp", "install", "--all", "--anyway").out
    rows = {row["agent"]: row for row in json.loads(cli("mcp", "status", "--json").out)["agents"]}
    assert [name for name, row in rows.items() if row["installed"]] == ["claude-code", "codex"]
    assert cli("mcp", "install", "codex", "--anyway", "--", "--all", "--allow-rewind").code == 0
    assert "--all --allow-rewind" in cli("mcp", "status").out
    assert cli("mcp", "uninstall", "--all").code == 0
    assert settings.read_text() == '{"numStartups": 1}\n'
    assert list((person / ".codex").iterdir()) == []


def test_of_several_all_or_none(cli: Cli, person: Path):
    (person / ".claude.json").write_text("{}")
    (person / ".codex/config.toml").write_text("a = [")
    done = cli("mcp", "install", "--all", "--anyway")
    assert done.code == 6
    assert "nothing was changed" in done.err
    assert (person / ".claude.json").read_text() == "{}"


@pytest.mark.parametrize(
    "words, code, told",
    [
        (["install", "--anyway"], 2, "claude-code, codex; or --all"),
        (["install"], 7, "not permanent"),  # before anybody is asked for which agent
        (["install", "claude-code"], 7, "not permanent"),
        (["install", "nobody", "--anyway"], 3, "one of claude-code, codex"),
        (["install", "codex", "--allow-rewind"], 2, "follow --"),
        (["install", "codex", "--anyway", "--", "--fly"], 2, "no such option '--fly'"),
        (["install", "codex", "--anyway", "--", "--all", "--workspace", "."], 2, "do not go together"),
        (["install", "codex", "--anyway", "--", "--workspace", "nowhere"], 3, "there is no folder nowhere"),
        (["uninstall", "codex", "--", "--all"], 2, "are for install"),
        (["status", "--", "--all"], 2, "are for install"),
        (["fly"], 2, "no action 'fly'"),
        (["status", "codex"], 2, "about all agents"),
        (["--all", "--workspace", "."], 2, "leave one of them out"),
        (["--workspace", "nowhere"], 3, "there is no folder nowhere"),
        (["--json"], 2, "are for install"),
    ],
)
def test_what_cannot_be_is_said(cli: Cli, person: Path, words: list[str], code: int, told: str):
    done = cli("mcp", *words)
    assert (done.code, told in done.err) == (code, True), done.err
    assert list((person / ".codex").iterdir()) == []


def test_an_agent_does_not_take_it_out(cli: Cli, person: Path, monkeypatch: pytest.MonkeyPatch):
    cli("mcp", "install", "codex", "--anyway")
    monkeypatch.setenv("CLAUDECODE", "1")
    assert "TURNLOG_ALLOW_AGENT" in cli("mcp", "uninstall", "codex").err
    assert (person / ".codex/config.toml").exists()


def test_on_a_terminal_it_asks_for_each_and_says_what_it_waits_for(person: Path, cli: Cli):
    with Terminal("-m", "turnlog", "mcp", "install", "--anyway") as terminal:
        terminal.until("Claude Code: add turnlog to ~/.claude.json? [y/N]")
        terminal.type("y\n")
        terminal.until("Codex: add turnlog to")
        terminal.type("\n")
        assert terminal.end() == 0
    assert (person / ".claude.json").exists()
    assert list((person / ".codex").iterdir()) == []
    with Terminal("-m", "turnlog", "mcp") as terminal:
        terminal.until("waiting for an agent")
        terminal.type("\x04")
        assert terminal.end() == 0


def test_for_a_project_it_asks_about_the_file_that_is_written(person: Path, cli: Cli):
    (person / ".copilot").mkdir()  # has no such file of a project, so nobody is asked about it
    with Terminal("-m", "turnlog", "mcp", "install", "--project", "--anyway", columns=400) as terminal:
        terminal.until(f"Claude Code: add turnlog to {Path.cwd()}/.mcp.json? [y/N]")
        terminal.type("y\n")
        terminal.until("Codex: add turnlog to")
        terminal.type("\n")
        assert terminal.end() == 0, terminal.text
    assert (Path.cwd() / ".mcp.json").exists()
    assert not (person / ".claude.json").exists()


def test_without_a_stdin_it_ends(folder: Path):
    done = subprocess.run(["sh", "-c", f"{sys.executable} -m turnlog mcp <&-"], capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_folder_to_serve_is_the_same_wherever_the_agent_starts(cli: Cli, person: Path):
    Path("api").mkdir()
    words = ["mcp", "install", "codex", "--anyway"]
    assert cli(*words, "--", "--allow-rewind", "-wapi").code == 0
    assert (
        f'["mcp", "--workspace", "{Path.cwd()}/api", "--allow-rewind"]' in (person / ".codex/config.toml").read_text()
    )
    done = cli("mcp", "install", "claude-code", "--anyway", "--project", "--", "-w", "api")
    assert done.code == 0, done.err
    assert json.loads(Path(".mcp.json").read_text())["mcpServers"]["turnlog"]["args"] == ["mcp", "-w", "api"]
