"""What the README shows works as it is written there."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import turnlog
from tests.faces import Place
from turnlog import Usage

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """A machine where nobody has used Turnlog yet, in a project of its own."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.parametrize("face", ["files", "aio"])
def test_the_python_runs(empty, monkeypatch, face):
    place = Place(face, empty / "home")
    if face == "aio":
        monkeypatch.setattr(turnlog, "open", place.open)
    [code] = blocks("python")
    names: dict = {}
    exec(compile(code, "README.md", "exec"), names)
    monkeypatch.undo()
    place.close()
    with turnlog.open(empty / "home") as home:
        rows = home.sessions()
        assert sorted(row.title for row in rows) == ["Fix the flaky test"] * 2
        [forked] = [row for row in rows if row.fork is not None]
        [row] = [row for row in rows if row.fork is None]
        assert (forked.fork.session, forked.fork.name) == (row.id, "another idea")
        session = home.resume(row.id)
        assert [message.role for message in session.messages()] == ["user"]
        assert [message.role for message in home.resume(forked.id).messages()] == ["user", "assistant", "tool"]
        assert session.get("tasks") == [{"id": "1", "content": "find the race", "status": "pending"}]
        assert session.usage().own == Usage(input_tokens=300, output_tokens=80, cache_read_tokens=900)
        assert session.stats().turns == 1
        assert session.damage == []
        assert {entry.why for entry in session.entries(kind="head")} == {"rewind", "undo", "redo"}


def test_the_shell_lines_run(empty):
    with turnlog.open(empty / "home") as home:
        session = home.create(workspace=".", title="Fix the flaky test")
        session.user("The test is flaky, fix it")
        session.assistant("Done.", model="claude-sonnet-4-5", usage=Usage(input_tokens=300, output_tokens=80))
    lines = [line for block in blocks("sh") for line in block.splitlines() if line.strip()]
    assert len(lines) >= 4
    for line in lines:
        program, *words = shlex.split(line, comments=True)
        assert program == "turnlog"
        done = subprocess.run(
            [sys.executable, "-m", "turnlog", *words], capture_output=True, text=True, check=False, env=dict(os.environ)
        )
        assert done.returncode == 0, (line, done.stderr)
        assert done.stdout.strip(), line


def test_the_commands_that_set_everything_up_exist():
    targets = re.findall(r"^\$ make (\w+)", README, re.MULTILINE)
    assert targets == ["demo", "test"]
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
