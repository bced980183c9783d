"""`turnlog setup`: everything at once, shown before it is made, and taken back to the byte."""

import json
from pathlib import Path

import pytest

from tests.cli.scene import Cli
from tests.cli.terminal import Terminal

RC = "export PS1='$ '\nalias ll='ls -l'"  # no end of line: it is not ours to add one for good
SETTINGS = '{\n    "theme": "dark",\n  "model": "opus",\n  "cleanupPeriodDays": 12\n}\n'


@pytest.fixture
def person(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Claude Code and Codex are here, and bash."""
    monkeypatch.setenv("SHELL", "/bin/bash")
    monkeypatch.setenv("TURNLOG_BACKGROUND", "off")
    person = tmp_path / "person"
    (person / ".claude/projects").mkdir(parents=True)
    (person / ".codex").mkdir()
    (person / ".claude/settings.json").write_text(SETTINGS)
    (person / ".bashrc").write_text(RC)
    (person / ".codex/config.toml").write_text('model = "gpt-5.5"  # the usual\n')
    return person


def files(person: Path) -> dict[str, bytes]:
    found = (path for path in person.rglob("*") if path.is_file())
    return {str(path.relative_to(person)): path.read_bytes() for path in found if ".local" not in path.parts}


def test_there_and_back_to_the_byte(person: Path, cli: Cli):
    before = files(person)
    shown = cli("setup", "--dry-run", "--anyway")
    assert shown.code == 0, shown.err
    assert files(person) == before
    for told in (
        "cleanupPeriodDays",
        '"Stop"',
        "mcpServers",
        "~/.bashrc is written",
        "~/.codex/config.toml is written",
    ):
        assert told in shown.out
    done = cli("setup", "--yes", "--anyway")
    assert done.code == 0, done.err
    assert "`turnlog setup --undo` takes it back" in done.err
    rows = cli("hooks", "--json").json["agents"]
    assert {row["agent"] for row in rows if row["installed"]} == {"claude-code", "codex"}
    rows = cli("mcp", "status", "--json").json["agents"]
    assert {row["agent"] for row in rows if row["installed"]} == {"claude-code", "codex"}
    assert [row["agent"] for row in cli("keep", "--status", "--json").json["agents"]] == ["claude-code"]
    assert 'eval "$(turnlog completion bash)"' in (person / ".bashrc").read_text()
    twice = files(person)
    assert cli("setup", "--yes", "--anyway").code == 0
    assert files(person) == twice
    assert cli("setup", "--undo", "--yes").code == 0
    assert files(person) == before
    assert cli("keep", "--status", "--json").json["agents"] == []
    assert "nothing was set up here; what was set up singly" in cli("setup", "--undo", "--yes").out


def test_what_others_changed_since_stays(person: Path, cli: Cli):
    assert cli("setup", "--yes", "--anyway").code == 0
    settings, rc = person / ".claude/settings.json", person / ".bashrc"
    settings.write_text(settings.read_text().replace('"opus"', '"sonnet"'))
    rc.write_text(rc.read_text() + "alias gs='git status'\n")
    assert cli("setup", "--undo", "--yes").code == 0
    assert settings.read_text() == SETTINGS.replace('"opus"', '"sonnet"')
    assert "turnlog" not in rc.read_text()
    assert rc.read_text().endswith("alias gs='git status'\n")


def test_what_was_there_before_is_not_taken_back(person: Path, cli: Cli):
    assert cli("hooks", "install", "codex", "--anyway").code == 0
    hooked = (person / ".codex/hooks.json").read_bytes()
    assert cli("setup", "--yes", "--anyway", "--no-keep", "--no-completion").code == 0
    assert cli("setup", "--undo", "--yes").code == 0
    assert (person / ".codex/hooks.json").read_bytes() == hooked
    assert (person / ".claude/settings.json").read_text() == SETTINGS


def test_on_a_terminal_it_asks_once_and_shows_every_edit(person: Path, cli: Cli):
    before = files(person)
    with Terminal("-m", "turnlog", "setup", "--anyway") as terminal:
        terminal.until("Here are claude-code, codex. Which of them? [all]")
        terminal.type("codex\n")
        terminal.until("taken back? [Y/n]")
        terminal.type("\n")
        terminal.until("earlier sessions? [Y/n]")
        terminal.type("n\n")
        terminal.until("Completion in your shell? [Y/n]")
        terminal.type("\n")
        terminal.until("Change 2 files? [y/N]")
        assert files(person) == before
        terminal.type("n\n")
        assert terminal.end() == 1
    assert "hooks: codex" in terminal.plain
    assert "completion: bash" in terminal.plain
    assert files(person) == before


@pytest.mark.parametrize("more", [[], ["--json"], ["--undo"]])
def test_without_a_terminal_it_says_what_to_type(more: list[str], person: Path, cli: Cli):
    assert more != ["--undo"] or cli("setup", "--yes", "--anyway").code == 0
    before = files(person)
    done = cli("setup", "--anyway", *more)
    assert done.code == 2
    assert "--yes" in done.err
    assert "--dry-run" in done.err
    assert files(person) == before


def test_a_file_that_is_broken_is_refused_before_anything_is_changed(person: Path, cli: Cli):
    (person / ".claude/settings.json").write_text("{ nonsense")
    before = files(person)
    done = cli("setup", "--yes", "--anyway")
    assert done.code == 6
    assert "settings.json" in done.err
    assert files(person) == before


def test_an_agent_that_is_not_here_is_named(person: Path, cli: Cli):
    told = json.loads(cli("setup", "pi", "--yes", "--json").err)["error"]
    assert "'pi'" in told["message"]
    assert "claude-code, codex" in told["hint"]


@pytest.mark.parametrize("chosen", ["--home", "TURNLOG_HOME"])
def test_hooks_and_the_server_are_given_the_home_that_was_chosen(
    chosen: str, person: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    named = tmp_path / "chosen"
    words = ("--home", str(named)) if chosen == "--home" else ()
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path / "another" if words else named))
    assert cli(*words, "setup", "--yes", "--anyway").code == 0
    entry = json.loads((person / ".claude.json").read_text())["mcpServers"]["turnlog"]
    assert entry["env"] == {"TURNLOG_HOME": str(named)}
    assert f'TURNLOG_HOME = "{named}"' in (person / ".codex/config.toml").read_text()
    hook = json.loads((person / ".claude/settings.json").read_text())["hooks"]["Stop"][0]["hooks"][0]["command"]
    assert f"TURNLOG_HOME={named}" in hook or f"--home {named}" in hook
    assert cli(*words, "setup", "--undo", "--yes").code == 0
    assert not (person / ".claude.json").exists()


def test_what_another_version_set_up_is_left_to_it(person: Path, folder: Path, cli: Cli):
    before = files(person)
    assert cli("setup", "--yes", "--anyway").code == 0
    [record] = folder.parent.rglob("setup.json")
    recorded = json.loads(record.read_text())
    others = {"hooks": ["next-agent"], "shell": ["nu"]}
    record.write_text(json.dumps({**recorded, "hooks": [*recorded["hooks"], "next-agent"], "shell": ["nu"]}))
    done = cli("setup", "--undo", "--yes")
    assert done.code == 0, done.err
    assert "note: hooks of next-agent: another version of turnlog set this up, and takes it back" in done.err
    assert files(person) == before
    assert json.loads(record.read_text()) == others
