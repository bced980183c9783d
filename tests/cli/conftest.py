"""A home with a session in it, and the command line to look at it."""

import subprocess
import sys
from pathlib import Path

import pytest

import turnlog
from tests.cli.scene import Cli, Done, write_session
from turnlog.cli.program import run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of this test; the current folder is another one."""
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("COLUMNS", raising=False)
    workspace = tmp_path / "webshop"
    workspace.mkdir()
    monkeypatch.chdir(workspace)
    return tmp_path / "home"


@pytest.fixture
def cli(folder: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command in this process."""

    def call(*words: str) -> Done:
        capsys.readouterr()
        code = run(words)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return call


@pytest.fixture
def process(folder: Path) -> Cli:
    """Run a command in a process of its own."""

    def call(*words: str) -> Done:
        done = subprocess.run([sys.executable, "-m", "turnlog", *words], capture_output=True, encoding="utf-8")
        return Done(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def session(folder: Path) -> str:
    """The id of a session in that home."""
    with turnlog.open() as home:
        return write_session(home)


@pytest.fixture
def log(folder: Path, session: str) -> Path:
    """Its file."""
    return folder / "sessions" / f"{session}.jsonl"
