"""Where an agent works, and which process it is: its folder, git worktrees that it goes into, who calls the hook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.live.test_hook import ID, PROGRAM, Machine
from turnlog.cli.draw.hooks import print_statuses
from turnlog.cli.overview.diskspace import space_lines
from turnlog.hooks import hooked_agent
from turnlog.live.event import LiveEvent
from turnlog.live.payload import Payload

AGENT = "claude-code"


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=me", "-c", "user.email=me@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    for name in ("HOME", "TURNLOG_HOME"):
        monkeypatch.setenv(name, made.environ[name])
    (made.place / ".git").rmdir()
    git(made.place, "init", "-q")
    (made.place / ".gitignore").write_text("*.env\n")
    git(made.place, "add", "-A")
    git(made.place, "commit", "-qm", "first")
    return made


def tell(machine: Machine, event: str, where: Path, native: str = ID, turn: str = "t1", **more: Any) -> None:
    """What a hook does, without a process of its own."""
    payload = {"session_id": native, "prompt_id": turn, "cwd": str(where), "prompt": "go", **more}
    began = machine.place if native == ID else where
    told = Payload(json.dumps(payload).encode(), {"CLAUDE_PROJECT_DIR": str(began)}, "CLAUDE_PROJECT_DIR")
    known = hooked_agent(AGENT).event(event)
    assert known is not None
    LiveEvent.open(hooked_agent(AGENT), told, os.getppid()).apply(known.means)


def worktree(machine: Machine, name: str, where: str = ".claude/worktrees") -> Path:
    folder = (machine.place / where / name).resolve()
    git(machine.place, "worktree", "add", "-q", str(folder))
    return folder


def changes(session) -> list[str]:
    return sorted(item.path for item in session.diff(turn=1))


@pytest.mark.parametrize("where", [".claude/worktrees", "../worktrees"])
def test_what_a_turn_did_in_a_worktree_goes_back_with_the_rest(machine: Machine, where: str):
    tell(machine, "UserPromptSubmit", machine.place)
    (machine.place / "a.py").write_text("x = 2\n")
    folder = worktree(machine, "feat", where)
    tell(machine, "PostToolUse", folder, tool_name="EnterWorktree", tool_input={"name": "feat"})
    (folder / "a.py").write_text("x = 3\n")
    tell(machine, "PostToolUse", folder, tool_name="Edit", tool_input={"file_path": str(folder / "a.py")})
    (folder / "new.txt").write_text("by a shell\n")
    (folder / "my.env").write_text("ignored\n")
    tell(machine, "PostToolUse", folder, tool_name="Bash", tool_input={"command": "echo"})
    tell(machine, "Stop", machine.place)
    session = machine.session(f"{AGENT}-{ID}")
    assert session.workspace == str(machine.place)
    lead = str(folder.relative_to(machine.place)) if "claude" in where else str(folder)
    assert changes(session) == sorted(["a.py", f"{lead}/a.py", f"{lead}/my.env", f"{lead}/new.txt"])
    lines = {item.path: item.lines for item in session.diff(turn=1)}[f"{lead}/a.py"]
    assert lines.splitlines()[:2] == [f"--- a/{lead}/a.py", f"+++ b/{lead}/a.py"]
    (folder / "mine.txt").write_text("a person's\n")
    begin = session.checkpoints()[0]
    assert {step.action for step in session.plan_rewind(to=begin).steps} == {"modify", "delete"}
    assert all(b"claude" not in step.raw for step in session.plan_rewind(to=begin).steps)
    session.rewind(to=begin)
    assert (machine.place / "a.py").read_text() == (folder / "a.py").read_text() == "x = 1\n"
    assert sorted(path.name for path in folder.iterdir()) == [".git", ".gitignore", "a.py", "mine.txt"]
    session.undo()
    assert (folder / "a.py").read_text() == "x = 3\n"
    assert (folder / "my.env").read_text() == "ignored\n"


def test_a_session_in_a_worktree_and_one_at_the_root_do_not_touch_each_other(machine: Machine):
    folder = worktree(machine, "feat")
    own = {"native": "in-the-worktree", "turn": "w1"}
    tell(machine, "UserPromptSubmit", machine.place)
    tell(machine, "UserPromptSubmit", folder, **own)
    (machine.place / "a.py").write_text("root\n")
    (folder / "a.py").write_text("worktree\n")
    tell(machine, "Stop", folder, **own)
    tell(machine, "Stop", machine.place)
    root, inner = machine.session(f"{AGENT}-{ID}"), machine.session(f"{AGENT}-in-the-worktree")
    assert (root.workspace, inner.workspace) == (str(machine.place), str(folder))
    assert (changes(root), changes(inner)) == (["a.py"], ["a.py"])
    root.rewind(to=root.checkpoints()[0], force=True)
    assert (folder / "a.py").read_text() == "worktree\n"
    inner.rewind(to=inner.checkpoints()[0])
    assert (machine.place / "a.py").read_text() == (folder / "a.py").read_text() == "x = 1\n"


@pytest.mark.parametrize("where", [".claude/worktrees", "../worktrees"])
def test_who_worked_in_the_same_worktree_keeps_what_is_its_own(machine: Machine, where: str):
    """A session that went there and one that lives there: what each edited is its own, whatever their folders are."""
    folder = worktree(machine, "feat", where)
    tell(machine, "UserPromptSubmit", machine.place)
    tell(machine, "PostToolUse", folder, tool_name="EnterWorktree", tool_input={"name": "feat"})
    tell(machine, "UserPromptSubmit", folder, "inside", "w1")
    for native, turn, name in ((ID, "t1", "one"), ("inside", "w1", "two")):
        (folder / name).write_text(name)
        edited = {"tool_name": "Write", "tool_input": {"file_path": str(folder / name)}}
        tell(machine, "PostToolUse", folder, native, turn, **edited)
    (folder / "shell").write_text("by one of them")
    tell(machine, "Stop", folder, "inside", "w1")
    tell(machine, "Stop", folder)
    plans = {}
    for name in (ID, "inside"):
        session = machine.session(f"{AGENT}-{name}")
        plans[name] = {step.path: step.action for step in session.plan_rewind(to=session.checkpoints()[0]).steps}
    assert plans == {ID: {"one": "delete", "shell": "conflict"}, "inside": {"two": "delete", "shell": "conflict"}}


def test_a_worktree_that_is_gone_is_not_made_again(machine: Machine):
    folder = worktree(machine, "feat")
    tell(machine, "UserPromptSubmit", folder)
    (folder / "a.py").write_text("x = 3\n")
    (machine.place / "a.py").write_text("x = 2\n")
    tell(machine, "Stop", folder)
    git(machine.place, "worktree", "remove", "--force", str(folder))
    session = machine.session(f"{AGENT}-{ID}")
    plan = session.plan_rewind(to=session.checkpoints()[0])
    assert {(step.path, step.action) for step in plan.to_do} == {("a.py", "modify")}
    session.rewind(to=session.checkpoints()[0])
    assert not folder.exists()
    assert (machine.place / "a.py").read_text() == "x = 1\n"


def test_another_repository_is_not_scanned_and_what_a_tool_edited_there_is_tracked(machine: Machine, tmp_path: Path):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (other / "f").write_text("one\n")
    (other / "g").write_text("one\n")
    inside = machine.place / "vendored"
    inside.mkdir()
    git(inside, "init", "-q")
    tell(machine, "UserPromptSubmit", machine.place)
    for path in (other / "f", inside / "h"):
        path.write_text("two\n")
        tell(machine, "PostToolUse", other, tool_name="Write", tool_input={"file_path": str(path)})
    tell(machine, "Stop", other)
    tell(machine, "UserPromptSubmit", machine.place, turn="t2")
    for path in (other / "f", other / "g", inside / "h"):
        path.write_text("three\n")
    tell(machine, "Stop", machine.place, turn="t2")
    session = machine.session(f"{AGENT}-{ID}")
    assert [entry.path for entry in session.entries(kind="track")] == [str(other / "f"), str(inside / "h")]
    assert sorted(item.path for item in session.diff(turn=2)) == [str(other / "f"), "vendored/h"]
    (other / "f").write_text("a person's\n")
    second = [point for point in session.checkpoints() if point.when == "begin"][1]
    session.rewind(to=second)
    assert ((other / "f").read_text(), (inside / "h").read_text()) == ("a person's\n", "two\n")


def test_the_folder_is_that_of_the_first_event_by_the_top_of_its_repository(machine: Machine, tmp_path: Path):
    (machine.place / "deep/er").mkdir(parents=True)
    told = {"CLAUDE_PROJECT_DIR": str(machine.place / "deep")}
    for event, cwd in (("begin", machine.place / "deep/er"), ("end", tmp_path), ("begin", tmp_path), ("end", tmp_path)):
        payload = {"session_id": ID, "prompt_id": f"t-{cwd.name}", "cwd": str(cwd), "prompt": "go"}
        LiveEvent.open(
            hooked_agent(AGENT), Payload(json.dumps(payload).encode(), told, "CLAUDE_PROJECT_DIR"), os.getppid()
        ).apply(event)
        told = {"CLAUDE_PROJECT_DIR": str(cwd)}
    with turnlog.open(machine.home) as home:
        assert [(row.id, row.workspace) for row in home.sessions()] == [(f"{AGENT}-{ID}", str(machine.place))]


_SHELLS = """sh -c '"$@"; true' x "$@"; true"""
_CALLS = """
import os, subprocess, sys
subprocess.run(["sh", "-c", *sys.argv[2:]], input=sys.argv[1].encode(), check=True)
print(os.getpid(), flush=True)
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="nobody can look who calls whom")
def test_the_turn_is_of_the_nearest_process_that_is_no_shell(machine: Machine):
    payload = json.dumps({"session_id": ID, "prompt_id": "t1", "cwd": str(machine.place), "prompt": "go"})
    with subprocess.Popen(
        [sys.executable, "-c", _CALLS, payload, _SHELLS, "x", *PROGRAM, AGENT, "UserPromptSubmit"],
        stdout=subprocess.PIPE, env=machine.environ, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        [writer] = machine.session(f"{AGENT}-{ID}").entries(kind="writer")
        assert (writer.pid, pid) == (process.pid, process.pid)


def test_where_nobody_is_found_a_turn_is_over_when_the_next_begins(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("turnlog.live.event.caller", lambda pid: 0)
    for number in (1, 2):
        tell(machine, "UserPromptSubmit", machine.place, turn=f"t{number}")
        (machine.place / f"new{number}").write_text("the agent's")
        tell(machine, "PostToolUse", machine.place, turn=f"t{number}", tool_name="Bash", tool_input={})
        (machine.place / f"mine{number}").write_text("a person's")
    session = machine.session(f"{AGENT}-{ID}")
    assert [entry.state for entry in session.entries(kind="turn")] == ["begin", "aborted", "begin"]
    assert list(session.entries(kind="writer")) == []
    plan = session.plan_rewind(to=session.checkpoints()[0])
    assert {step.path: step.action for step in plan.steps} == {
        "new1": "delete", "mine1": "conflict", "new2": "delete", "mine2": "conflict",
    }  # fmt: skip


def test_with_too_little_room_no_checkpoint_is_taken_and_the_turn_says_so(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("turnlog.machine.space.free_bytes", lambda folder: 10**9)
    tell(machine, "UserPromptSubmit", machine.place)
    (machine.place / "a.py").write_text("x = 2\n")
    tell(machine, "PostToolUse", machine.place, tool_name="Bash", tool_input={})
    tell(machine, "Stop", machine.place)
    session = machine.session(f"{AGENT}-{ID}")
    assert session.checkpoints() == []
    assert [entry.state for entry in session.entries(kind="turn")] == ["begin", "completed"]
    notes = [note.text for note in session.entries(kind="note")]
    assert [text.partition(":")[0] for text in notes] == [
        "no checkpoint at the begin of this turn", "no checkpoint at the end of this turn",
    ]  # fmt: skip
    assert "only 1000 MB are free" in notes[0]
    print_statuses([], {}, str(machine.home), space=space_lines(str(machine.home)))
    assert "no checkpoint is taken by itself before there are 2 GB" in capsys.readouterr().out
