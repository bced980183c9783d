"""A home with a session in it, and the command line to look at it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import turnlog
from tests.cli.printed import check_output
from tests.cli.scene import Cli, Done, write_session
from turnlog.cli.program import run

AGENT_HOMES = (
    "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "PI_CODING_AGENT_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME",
    "RHO_HOME", "CLAW_CONFIG_HOME", "CLINE_DATA_DIR", "COPILOT_HOME", "KIMI_SHARE_DIR", "KIMI_CODE_HOME",
    "GOOSE_PATH_ROOT",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of this test; the current folder is another one. The person's own home is not the real one, either."""
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    for name in AGENT_HOMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)
    workspace = tmp_path / "webshop"
    workspace.mkdir()
    monkeypatch.chdir(workspace)
    return tmp_path / "home"


@pytest.fixture
def cli(folder: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command in this process. JSON that it prints must be as its schema says."""

    def call(*words: str) -> Done:
        capsys.readouterr()
        code = run(words)
        captured = capsys.readouterr()
        check_output(words, captured.out)
        return Done(code, captured.out, captured.err)

    return call


@pytest.fixture
def process(folder: Path) -> Cli:
    """Run a command in a process of its own. JSON that it prints must be as its schema says."""

    def call(*words: str) -> Done:
        # The readline that pytest imports puts COLUMNS where only an inherited environment has it.
        surroundings = dict(os.environ)
        done = subprocess.run(
            [sys.executable, "-m", "turnlog", *words], capture_output=True, encoding="utf-8", env=surroundings
        )
        check_output(words, done.stdout)
        return Done(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def session(folder: Path) -> str:
    """The id of a session in that home."""
    with turnlog.open(checkpoints=False) as home:  # those are another story, and these tests know each entry
        return write_session(home)


@pytest.fixture
def log(folder: Path, session: str) -> Path:
    """Its file."""
    return folder / "sessions" / f"{session}.jsonl"
