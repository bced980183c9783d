"""Lines of turns that the hooks of an agent tell of: the real executable, and what the agent wrote down later."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.test_hook import ID, Machine

OTHER = "0a3f6b12-0000-4000-8000-000000000001"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def event(machine: Machine, name: str, turn: str, session: str = ID, **more: object) -> None:
    path = transcript(machine, session)
    machine.hook("claude-code", name, {"session_id": session, "prompt_id": turn, "transcript_path": str(path), **more})


def transcript(machine: Machine, session: str = ID) -> Path:
    return Path(machine.environ["HOME"]) / ".claude/projects/-shop" / f"{session}.jsonl"


def said(machine: Machine, turn: str, prompt: str, answer: str) -> None:
    """What Claude Code writes down of a turn."""
    path = transcript(machine)
    path.parent.mkdir(parents=True, exist_ok=True)
    parent = None
    if path.exists():
        parent = json.loads(path.read_text().splitlines()[-1])["uuid"]
    shared = {
        "isSidechain": False,
        "sessionId": ID,
        "cwd": str(machine.place),
        "version": "2.1.197",
        "userType": "external",
    }
    asked = {"role": "user", "content": prompt}
    told = {
        "id": f"msg_{turn}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": answer}], "usage": {"input_tokens": 1000, "output_tokens": 100},
    }  # fmt: skip
    with path.open("a") as file:
        for kind, message in (("user", asked), ("assistant", told)):
            uuid = f"{turn}-{kind}"
            record = {"parentUuid": parent, "type": kind, "message": message, "uuid": uuid, "promptId": turn, **shared}
            file.write(json.dumps({**record, "timestamp": "2026-11-16T10:00:00.000Z"}) + "\n")
            parent = uuid


def turnlog(machine: Machine, *words: str) -> str:
    command = [str(Path(sys.executable).with_name("turnlog")), *words]
    done = subprocess.run(command, cwd=machine.place, env=machine.environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_turn_told_by_hooks_wrote_the_line_and_one_that_was_interrupted_only_what_its_tools_did(machine: Machine):
    file = machine.place / "a.py"
    event(machine, "UserPromptSubmit", "one", prompt="go")
    file.write_text("x = 1\nby one\n")
    event(machine, "PostToolUse", "one", tool_name="Edit", tool_input={"file_path": str(file)})
    with file.open("a") as text:
        text.write("by the shell of one\n")
    said(machine, "one", "write a line", "It is written.")
    event(machine, "Stop", "one")
    event(machine, "UserPromptSubmit", "two", prompt="go on")
    with file.open("a") as text:
        text.write("by two\n")
    event(machine, "PostToolUse", "two", tool_name="Bash", tool_input={"command": "true"})
    with file.open("a") as text:
        text.write("by hand, after the turn was interrupted\n")
    event(machine, "UserPromptSubmit", "three", prompt="and now?")
    event(machine, "UserPromptSubmit", "theirs", OTHER, prompt="in the same folder")
    with file.open("a") as text:
        text.write("edited by the other one\n")
    event(machine, "PostToolUse", "theirs", OTHER, tool_name="Edit", tool_input={"file_path": str(file)})
    with file.open("a") as text:
        text.write("who knows\n")
    event(machine, "Stop", "three")
    event(machine, "Stop", "theirs", OTHER)
    lines = json.loads(turnlog(machine, "blame", "a.py", "--json"))["lines"]
    found = [(line["session"], line["turn"], line["why"]) for line in lines]
    mine, other = f"claude-code-{ID}", f"claude-code-{OTHER}"
    assert found == [
        (None, None, "before"),
        (mine, 1, None),
        (mine, 1, None),
        (mine, 2, None),
        (None, None, "between"),
        (other, 1, None),
        (None, None, "several"),
    ]
    assert (lines[1]["agent"], lines[1]["model"], lines[1]["prompt"]) == (
        "claude-code",
        "claude-sonnet-4-5",
        "write a line",
    )
    assert {(turn["session"], turn["turn"]) for turn in lines[6]["turns"]} == {(mine, 3), (other, 1)}
    assert "It is written." in turnlog(machine, "why", "a.py:2")
