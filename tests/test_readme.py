"""What the README shows works as it is written there, and so does the page for people who build agents."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import turnlog
from tests import picture
from tests.faces import Place
from tests.firstscreen import PITCH, README, blocks, run
from turnlog import Usage, formats

ROOT = Path(__file__).resolve().parents[1]
BUILDING = (ROOT / "docs/guide/building.md").read_text(encoding="utf-8")
USING = (ROOT / "docs/guide/using.md").read_text(encoding="utf-8")
NUMBERS = ("eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen")


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """A machine where nobody has used Turnlog yet, in a project of its own."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path / "home"))
    return tmp_path


def test_the_first_screen_runs(tmp_path):
    printed = run(sys.executable, tmp_path)
    assert "claude-code" in printed["turnlog"]
    assert "in the checkout" in printed["turnlog search 'flaky test'"]
    assert re.search(r"2026-11 .*\$8\.\d\d", printed["turnlog usage --by month"])
    assert "claude --resume 460f4edf" in printed["turnlog resume"]
    assert "add --exec and it runs" in printed["turnlog resume"]
    assert "rewind done" in printed["turnlog rewind"]
    with turnlog.open(tmp_path / "person" / ".turnlog") as home:
        assert "Fix the flaky test" in [row.title for row in home.sessions()]


def test_the_picture_is_what_happens(tmp_path):
    drawn = picture.draw(picture.story(tmp_path))
    assert picture.PICTURE.read_text(encoding="utf-8") == drawn, "draw it anew: python -m tests.picture"
    assert f"({picture.PICTURE.relative_to(ROOT)})" in README


def test_the_first_screen_says_what_is_so():
    first, _, below = README.partition("## What it promises")
    assert below
    assert first.count(PITCH) == 1
    named = ("Claude Code", "Codex", "Gemini CLI", "opencode")
    [more] = re.findall(r"\[(\w+) more\]", first)
    assert NUMBERS.index(more) + 8 + len(named) == len(formats.names())
    assert all(name in first for name in named)
    [code] = blocks("python")
    assert sum(bool(line.strip()) for line in code.splitlines()) == 6


def test_every_command_that_is_named_exists():
    there = {path.stem for path in (ROOT / "src/turnlog/cli/commands").glob("*.py")}
    named = {name for text in (README, USING) for name in re.findall(r"`turnlog ([a-z]+)", text)}
    assert {"run", "hooks", "keep"} <= named <= there


def test_the_ways_to_install_it_are_those_of_the_guide():
    [line] = [line for block in blocks("console") for line in block.splitlines() if "install" in line]
    ways = re.findall(r"(uv tool install turnlog|pipx install turnlog|pip install turnlog)", line)
    assert len(ways) == 3
    assert all(f"| `{way}` |" in USING for way in ways)


@pytest.mark.parametrize("face", ["files", "aio"])
def test_the_python_of_the_guide_runs(empty, monkeypatch, face):
    place = Place(face, empty / "home")
    if face == "aio":
        monkeypatch.setattr(turnlog, "open", place.open)
    code, *_ = blocks("python", BUILDING)
    names: dict = {}
    exec(compile(code, "building.md", "exec"), names)
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


def test_what_a_store_of_a_framework_is_built_with_runs(empty):
    [code] = [block for block in blocks("python", BUILDING) if "s.path(last=20)" in block]
    [program] = [block for block in blocks("python", BUILDING) if 's.tool_result("c2", {' in block]
    with turnlog.open(empty / "home") as home:
        s = home.create()
        ask = s.user("hi")
        s.assistant("hello")
        lines = [line.strip() for line in code.splitlines()]
        for line in lines:
            exec(compile(line, "building.md", "exec"), {"home": home, "s": s, "ask": ask, "t": None} | _made(home))
        assert (s.get("paused"), home.sessions()[0].listed) == ({"api_key": "k"}, {"state": {"n": 1}})
        assert len(s.messages()) == 4
        exec(compile(dedent(program), "building.md", "exec"), {"turnlog": turnlog, "s": s})
        assert [message.role for message in s.messages(last=2)] == ["tool", "user"]
        assert not home.exists("t1")


def _made(home: turnlog.Home) -> dict:
    there = {"t": home.resume("t1")} if home.exists("t1") else {}
    return {"draft": turnlog.Message(role="user", blocks=[turnlog.Text("more")]), **there}


def test_the_shell_lines_of_the_guide_run(empty):
    with turnlog.open(empty / "home") as home:
        session = home.create(workspace=".", title="Fix the flaky test")
        session.user("The test is flaky, fix it")
        session.assistant("Done.", model="claude-sonnet-4-5", usage=Usage(input_tokens=300, output_tokens=80))
    lines = [line for block in blocks("sh", USING) for line in block.splitlines() if line.strip()]
    assert len(lines) >= 4
    for line in lines:
        program, *words = shlex.split(line, comments=True)
        assert program == "turnlog"
        words = [sys.executable, "-m", "turnlog", *words]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (line, done.stderr)
        assert done.stdout.strip(), line


def test_the_commands_that_set_everything_up_exist():
    targets = re.findall(r"^\$ make (\w+)", README, re.MULTILINE)
    assert targets == ["demo", "test"]
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
