"""`turnlog hook`, the real executable, as agents call it: it takes every turn, and is never in the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from glob import glob
from pathlib import Path
from typing import Any

import pytest

import turnlog
from turnlog.exchange.turnlock import one_at_a_time
from turnlog.hooks.trace import NAME, read_traces
from turnlog.session.interior import interior

PROGRAM = [str(Path(sys.executable).with_name("turnlog")), "hook"]
OWN = str(Path(turnlog.__file__).parents[1])
"""Where the code lies that is tested: the launcher may be of another one."""
ID = "93a31366-ffe9-4705-8426-f81d3cf67c6b"


class Machine:
    """A person's home, a project, and hooks that are called in it."""

    def __init__(self, folder: Path) -> None:
        self.home, self.place = folder / "home", folder / "shop"
        (self.place / "src").mkdir(parents=True)
        (folder / "person").mkdir()
        (self.place / "a.py").write_text("x = 1\n")
        (self.place / ".git").mkdir()
        self.environ = {
            "PATH": os.environ["PATH"], "HOME": str(folder / "person"), "TURNLOG_HOME": str(self.home),
            "PYTHONPATH": OWN,
        }  # fmt: skip

    def start(self, agent: str, event: str, data: bytes, **more: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*PROGRAM, agent, event], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd=self.place, env={**self.environ, **more},
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(data)
        process.stdin.close()
        process.stdin = None
        return process

    def hook(self, agent: str, event: str, payload: dict[str, Any] | bytes, **more: str) -> str:
        data = payload if isinstance(payload, bytes) else json.dumps({"cwd": str(self.place), **payload}).encode()
        process = self.start(agent, event, data, **more)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, err) == (0, b"")
        return out.decode()

    def session(self, name: str):
        return turnlog.open(self.home).resume(name)

    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.home / NAME).read_text().splitlines()]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def paths(session, turn: int) -> list[str]:
    return sorted(item.path for item in session.diff(turn=turn))


TOLD = {
    "claude-code": (
        ("UserPromptSubmit", {"session_id": ID, "prompt_id": "59afd286-60b5-49c1-9bdb-1a1f49d135d5", "prompt": "go"}),
        ("PostToolUse", {"session_id": ID, "tool_name": "Edit", "tool_input": {"file_path": "a.py"}}),
        ("Stop", {"session_id": ID, "prompt_id": "59afd286-60b5-49c1-9bdb-1a1f49d135d5", "stop_hook_active": False}),
    ),
    "codex": (
        ("UserPromptSubmit", {"session_id": ID, "turn_id": "01a1e04f-9016-7221-b0c6-a1b1581d2cd2", "prompt": "go"}),
        ("PostToolUse", {"session_id": ID, "tool_name": "apply_patch", "tool_input": {
            "command": "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** End Patch"}}),
        ("Stop", {"session_id": ID, "turn_id": "01a1e04f-9016-7221-b0c6-a1b1581d2cd2"}),
    ),
    "gemini-cli": (
        ("BeforeAgent", {"session_id": ID, "timestamp": "2026-11-15T17:45:09.032Z", "prompt": "go"}),
        ("AfterTool", {"session_id": ID, "tool_name": "replace", "tool_input": {"file_path": "a.py"}}),
        ("AfterAgent", {"session_id": ID, "prompt": "go", "prompt_response": "Done."}),
    ),
    "qwen-code": (
        ("UserPromptSubmit", {"session_id": ID, "timestamp": "2026-11-15T17:45:09.032Z", "prompt": "go"}),
        ("PostToolUse", {"session_id": ID, "tool_name": "edit", "tool_input": {"file_path": "a.py"}}),
        ("Stop", {"session_id": ID, "stop_hook_active": True}),
    ),
    "copilot-cli": (
        ("userPromptSubmitted", {"sessionId": ID, "timestamp": 1794764921136, "prompt": "go"}),
        ("postToolUse", {"sessionId": ID, "toolName": "edit", "toolArgs": {"path": "a.py"}}),
        ("agentStop", {"sessionId": ID, "stopReason": "end_turn"}),
    ),
    "opencode": (
        ("chat.message", {"session_id": "ses_e1faf00b1ffe", "prompt_id": "msg_1e05100b8001", "pid": 1 << 30}),
        ("tool.execute.after", {
            "session_id": "ses_e1faf00b1ffe", "tool_name": "edit", "tool_input": {"file_path": "a.py"}}),
        ("session.idle", {"session_id": "ses_e1faf00b1ffe"}),
    ),
    "pi": (
        ("before_agent_start", {"session_id": ID, "parent_id": "f595a895"}),
        ("tool_result", {"session_id": ID, "tool_name": "edit", "tool_input": {"file_path": "a.py"}}),
        ("agent_end", {"session_id": ID}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("agent", ["opencode", "pi"])
def test_a_turn_that_was_stopped_ended_where_its_last_tool_ended(machine: Machine, agent: str):
    """What somebody types while the agent tells of it is a conflict; what he types then, nobody asks about."""
    begin, tool, (end, told) = TOLD[agent]
    machine.hook(agent, *begin)
    (machine.place / "tool").write_text("")
    machine.hook(agent, *tool)
    (machine.place / "early").write_text("")
    machine.hook(agent, end, {**told, "interrupted": True})
    (machine.place / "late").write_text("")
    session = machine.session(f"{agent}-{told['session_id']}")
    assert [e.state for e in session.entries(kind="turn")] == ["begin", "aborted"]
    assert paths(session, 1) == ["tool"]
    plan = session.plan_rewind(to=session.checkpoints()[0])
    assert sorted((step.path, step.action) for step in plan.steps) == [
        ("early", "conflict"), ("tool", "delete"),
    ]  # fmt: skip


@pytest.mark.parametrize("agent", TOLD)
def test_each_agent_tells_of_a_turn_in_its_own_words(machine: Machine, agent: str):
    begin, tool, end = TOLD[agent]
    assert machine.hook(agent, *begin) == ""
    (machine.place / "a.py").write_text("x = 2\n")
    assert machine.hook(agent, *tool) == ""
    (machine.place / "made by the shell").write_text("")
    assert machine.hook(agent, *end) == ""
    native = begin[1].get("session_id") or begin[1]["sessionId"]
    session = machine.session(f"{agent}-{native}")
    assert session.workspace == str(machine.place)
    assert [e.state for e in session.entries(kind="turn")] == ["begin", "completed"]
    assert [c.when for c in session.checkpoints()] == ["begin", "tool", "end"]
    assert [e.paths for e in session.entries(kind="changed")] == [["a.py"]]
    assert paths(session, 1) == ["a.py", "made by the shell"]
    assert [line["event"] for line in machine.log()][:3] == [begin[0], tool[0], end[0]]
    assert not any("error" in line or "go" in line.values() for line in machine.log())
    assert (machine.home / NAME).stat().st_mode & 0o777 == 0o600


HOSTILE: dict[str, tuple[str, str, bytes]] = {
    "nothing": ("claude-code", "UserPromptSubmit", b""),
    "no JSON": ("claude-code", "UserPromptSubmit", b"\xff\xfe{"),
    "a list": ("claude-code", "UserPromptSubmit", b"[1, 2]"),
    "other types": ("claude-code", "UserPromptSubmit", b'{"session_id": {"a": 1}, "cwd": 7, "tool_input": "x"}'),
    "deep": ("claude-code", "PostToolUse", b'{"session_id": "s", "tool_input": ' + b"[" * 200_000),
    "an id that is a path": ("claude-code", "UserPromptSubmit", b'{"session_id": "../../../etc/x", "cwd": "CWD"}'),
    "a folder that is not there": ("codex", "UserPromptSubmit", b'{"session_id": "s1", "cwd": "/nowhere/at/all"}'),
    "the whole file system": ("codex", "UserPromptSubmit", b'{"session_id": "s2", "turn_id": "t", "cwd": "/"}'),
    "an agent that nobody knows": ("no-such", "Stop", b'{"session_id": "s3", "cwd": "CWD"}'),
    "huge": ("codex", "PostToolUse", b'{"session_id": "s", "tool_input": "' + b"x" * 20_000_000 + b'"}'),
    "a surrogate": ("codex", "UserPromptSubmit", b'{"session_id": "\\ud800", "turn_id": "\\ud800", "cwd": "CWD"}'),
    "the home folder": ("codex", "UserPromptSubmit", b'{"session_id": "s5", "turn_id": "t", "cwd": "HOME"}'),
    "an event that nobody knows": ("codex", "PreModelRequest", b'{"session_id": "s3", "cwd": "CWD"}'),
    "an end without a beginning": ("codex", "Stop", b'{"session_id": "s3", "turn_id": "t", "cwd": "CWD"}'),
    "a path of elsewhere": (
        "codex", "UserPromptSubmit", b'{"session_id": "s4", "cwd": "CWD", "transcript_path": "/etc/passwd"}',
    ),
}  # fmt: skip


def test_whatever_comes_in_it_is_silent_and_ends_well(machine: Machine):
    folder, person = str(machine.place).encode(), machine.environ["HOME"].encode()
    began = time.monotonic()
    started = {
        name: machine.start(agent, event, data.replace(b"CWD", folder).replace(b"HOME", person))
        for name, (agent, event, data) in HOSTILE.items()
    }
    done = {name: (*process.communicate(timeout=30), process.returncode) for name, process in started.items()}
    assert done == {name: (b"", b"", 0) for name in HOSTILE}
    assert time.monotonic() - began < 8
    with turnlog.open(machine.home) as home:
        assert sorted(row.id for row in home.sessions()) == ["codex-s2", "codex-s4", "codex-s5"]
        for name in ("codex-s2", "codex-s5"):
            with home.read(name) as whole:
                [note] = whole.entries(kind="note")
                assert note.text.startswith("turns take no checkpoints: ")
                assert whole.checkpoints() == []
        with home.read("codex-s4") as elsewhere:
            assert next(elsewhere.entries()).origin["path"] == ""  # type: ignore[union-attr,index,call-overload]
    errors = {(line["agent"], line["event"]) for line in machine.log() if "error" in line}
    assert ("claude-code", "UserPromptSubmit") in errors
    assert ("no-such", "Stop") in errors
    assert read_traces(str(machine.home))["no-such"].last_error.startswith("NotFound: no hooks are known")


def test_other_peoples_modules_and_settings_of_python_are_in_nobodys_way(machine: Machine, tmp_path: Path):
    for folder in (machine.place, tmp_path / "modules"):
        folder.mkdir(exist_ok=True)
        for name in ("json", "select", "signal", "msgspec", "datetime", "hashlib"):
            (folder / f"{name}.py").write_text("raise SystemExit('wrong module')\n")
    begin = TOLD["codex"][0]
    machine.hook("codex", *begin, PYTHONPATH=f"{tmp_path / 'modules'}:{OWN}")
    machine.hook("codex", *TOLD["codex"][2])
    assert [e.state for e in machine.session(f"codex-{ID}").entries(kind="turn")] == ["begin", "completed"]


def test_an_agent_that_never_closes_what_it_says_is_understood(machine: Machine):
    data = json.dumps({"cwd": str(machine.place), **TOLD["codex"][0][1]}).encode()
    began = time.monotonic()
    with subprocess.Popen(
        [*PROGRAM, "codex", "UserPromptSubmit"], stdin=subprocess.PIPE, cwd=machine.place, env=machine.environ
    ) as process:
        assert process.stdin is not None
        process.stdin.write(data)
        process.stdin.flush()
        assert process.wait(timeout=10) == 0
        assert time.monotonic() - began < 8
    assert [e.state for e in machine.session(f"codex-{ID}").entries(kind="turn")] == ["begin"]


def test_an_agent_that_says_nothing_or_half_of_it_waits_a_few_seconds_at_the_most(machine: Machine):
    began = time.monotonic()
    waiting: list[subprocess.Popen[bytes]] = []
    for said in (b"", b'{"session_id": "s1", "cwd": '):
        process = subprocess.Popen(
            [*PROGRAM, "codex", "Stop"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd=machine.place, env=machine.environ,
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(said)
        process.stdin.flush()
        waiting.append(process)
    for process in waiting:
        assert process.wait(timeout=10) == 0
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read() + process.stderr.read() == b""
        process.communicate()
    assert time.monotonic() - began < 8


def test_two_hooks_at_once_and_the_same_beginning_twice_are_one_turn(machine: Machine):
    begin, tool, end = TOLD["codex"]
    for name, payload in (begin, begin, tool, end):
        data = json.dumps({"cwd": str(machine.place), **payload}).encode()
        at_once = [machine.start("codex", name, data) for _ in range(2)]
        assert [process.communicate(timeout=20) for process in at_once] == [(b"", b"")] * 2
    with machine.session(f"codex-{ID}") as session:
        assert [e.state for e in session.entries(kind="turn")] == ["begin", "completed"]
        assert len([c for c in session.checkpoints() if c.when == "begin"]) == 1
    assert not [line for line in machine.log() if "error" in line]


def test_an_environment_with_nothing_in_it_is_enough(machine: Machine):
    """But for the home folder: the one of whoever runs this is his."""
    code = f"import sys; sys.path.insert(0, {OWN!r}); sys.argv[1:] = ['hook', 'codex', 'Stop']; " + (
        "from turnlog.cli import main; main()"
    )
    data = json.dumps({"cwd": str(machine.place), **TOLD["codex"][2][1]}).encode()
    bare = {"HOME": machine.environ["HOME"]}
    done = subprocess.run([sys.executable, "-c", code], input=data, env=bare, cwd=machine.place, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert os.path.exists(f"{bare['HOME']}/.turnlog/{NAME}")


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="nobody can look who holds what")
def test_what_goes_on_behind_an_agents_back_holds_nothing_of_its(machine: Machine):
    begin, _, end = TOLD["codex"]
    machine.hook("codex", *begin)
    read, write = os.pipe()
    pipe = os.readlink(f"/proc/self/fd/{write}")
    process = subprocess.Popen(
        [*PROGRAM, "codex", end[0]], stdin=subprocess.PIPE, stdout=write, stderr=write, pass_fds=[write],
        cwd=machine.place, env=machine.environ,
    )  # fmt: skip
    process.communicate(json.dumps({"cwd": str(machine.place), **end[1]}).encode(), timeout=10)
    os.close(write)
    others = [link for link in glob("/proc/[0-9]*/fd/*") if not link.startswith(f"/proc/{os.getpid()}/")]
    assert [link for link in others if _target(link) == pipe] == []  # what was said is still being looked for
    os.close(read)


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""  # it is gone by now, or somebody else's


def test_the_model_is_told_what_was_taken_back_and_nothing_else_ever(machine: Machine):
    agent, (begin, _, end) = "claude-code", TOLD["claude-code"]
    assert machine.hook(agent, *begin) == ""
    (machine.place / "a.py").write_text("x = 2\n")
    machine.hook(agent, *end)
    session = machine.session(f"{agent}-{ID}")
    session.rewind(to=session.checkpoints()[0])
    session.close()
    second = {**begin[1], "prompt_id": "second"}
    assert machine.hook(agent, begin[0], {**second, "prompt_id": "quiet"}, TURNLOG_QUIET="1") == ""
    session = machine.session(f"{agent}-{ID}")
    session.rewind(to=session.checkpoints()[0], force=True)
    (machine.place / "a.py").write_text("x = 3\n")
    machine.hook(agent, end[0], {**end[1], "prompt_id": "quiet"})
    session.refresh()
    session.rewind(to=session.checkpoints()[0])
    session.close()
    told = machine.hook(agent, begin[0], second)
    assert told.count("\n") == 1
    assert "a.py" in told
    assert machine.hook(agent, begin[0], {**second, "prompt_id": "third"}) == ""


def test_what_an_agent_does_after_an_interruption_is_not_in_the_turn_that_was_interrupted(machine: Machine):
    """Esc fires no hook, and what is answered to a shell command of the user goes by the old id of the turn."""
    agent, (begin, tool, end), native = "claude-code", TOLD["claude-code"], TOLD["claude-code"][0][1]["prompt_id"]
    file = machine.home.parent / f"person/.claude/projects/-shop/{ID}.jsonl"
    file.parent.mkdir(parents=True)
    told = {"transcript_path": str(file), "prompt_id": native}
    quoted = {"type": "tool_result", "tool_use_id": "t", "content": '"text": "[Request interrupted by user]"'}
    _write(file, native, {"type": "text", "text": "[Request interrupted by user]"}, "older")
    _write(file, native, quoted)
    machine.hook(agent, begin[0], {**begin[1], **told})
    (machine.place / "tool").write_text("")
    machine.hook(agent, tool[0], {**tool[1], **told})
    _write(file, native, {"type": "text", "text": "[Request interrupted by user for tool use]"})
    (machine.place / "typed").write_text("")
    machine.hook(agent, tool[0], {**tool[1], **told})
    machine.hook(agent, end[0], {**end[1], **told})
    session = machine.session(f"{agent}-{ID}")
    assert [e.state for e in session.entries(kind="turn")] == ["begin", "aborted"]
    assert paths(session, 1) == ["tool"]
    with one_at_a_time(interior(turnlog.open(machine.home)).store, session.id):
        session.refresh()
        session.rewind(to=session.checkpoints()[0])
    assert sorted(path.name for path in machine.place.iterdir()) == [".git", "a.py", "src", "typed"]


def test_a_rewind_inside_the_agent_is_followed(machine: Machine):
    """It keeps its id and its file, and tells nobody: the next prompt hangs on an earlier record."""
    file = machine.home.parent / f"person/.claude/projects/-shop/{ID}.jsonl"
    file.parent.mkdir(parents=True)
    for number, parent in ((1, None), (2, "1"), (3, "1")):
        told = {"session_id": ID, "transcript_path": str(file), "prompt_id": f"p{number}", "prompt": "go"}
        machine.hook("claude-code", "UserPromptSubmit", told)
        text = {"type": "text", "text": f"prompt {number}"}
        _write(file, f"p{number}", text, uuid=str(number), parent=parent)
        (machine.place / f"turn {number}").write_text("")
        machine.hook("claude-code", "Stop", told)
        (machine.place / f"mine after {number}").write_text("")
    for target, kept in ((3, {"prompt 1"}), (2, {"prompt 1"})):
        words = ["rewind", f"turn:{target}", "--yes"]
        subprocess.run([*PROGRAM[:1], *words], cwd=machine.place, env=machine.environ, capture_output=True, check=True)
        with machine.session(f"claude-code-{ID}") as session:
            assert {block.text for message in session.messages() for block in message.blocks} == kept
    names = {path.name for path in machine.place.iterdir()} - {".git", "a.py", "src"}
    assert names == {"turn 1", "mine after 1", "mine after 2", "mine after 3"}


def _write(
    file: Path, native: str, block: dict[str, Any], turn: str = "", uuid: str = "", parent: str | None = None
) -> None:
    record = {
        "parentUuid": parent, "isSidechain": False, "promptId": turn or native, "type": "user", "sessionId": ID,
        "uuid": uuid or os.urandom(8).hex(), "message": {"role": "user", "content": [block]},
        "timestamp": "2026-11-15T17:45:09.032Z",
    }  # fmt: skip
    with file.open("a") as out:
        out.write(json.dumps(record, separators=(",", ":")) + "\n")


def test_who_looks_sees_that_a_turn_was_interrupted(machine: Machine):
    agent, (begin, tool, _), native = "claude-code", TOLD["claude-code"], TOLD["claude-code"][0][1]["prompt_id"]
    file = machine.home.parent / f"person/.claude/projects/-shop/{ID}.jsonl"
    file.parent.mkdir(parents=True)
    told = {"transcript_path": str(file), "prompt_id": native}
    machine.hook(agent, begin[0], {**begin[1], **told})
    (machine.place / "tool").write_text("")
    machine.hook(agent, tool[0], {**tool[1], **told})
    _write(file, native, {"type": "text", "text": "go"})
    _write(file, native, {"type": "text", "text": "[Request interrupted by user]"})
    (machine.place / "typed").write_text("")
    program = [*PROGRAM[:1], "rewind", "--dry-run", "--json"]
    done = subprocess.run(program, cwd=machine.place, env=machine.environ, capture_output=True, text=True, check=True)
    assert {step["path"]: step["action"] for step in json.loads(done.stdout)["steps"]} == {
        "tool": "delete", "typed": "conflict",
    }  # fmt: skip
    assert [e.state for e in machine.session(f"{agent}-{ID}").entries(kind="turn")] == ["begin", "aborted"]


def test_one_after_the_other_brings_in_what_was_said(machine: Machine):
    """Two at once would leave the conversation where one of them found it, and not where a rewind put it since."""
    agent, begin = "claude-code", TOLD["claude-code"][0]
    file = machine.home.parent / f"person/.claude/projects/-shop/{ID}.jsonl"
    file.parent.mkdir(parents=True)
    machine.hook(agent, begin[0], {**begin[1], "transcript_path": str(file)})
    time.sleep(0.5)
    _write(file, begin[1]["prompt_id"], {"type": "text", "text": "go"})
    show = [*PROGRAM[:1], "show", "--json"]
    with one_at_a_time(interior(turnlog.open(machine.home)).store, f"{agent}-{ID}"):
        process = subprocess.Popen(show, cwd=machine.place, env=machine.environ, stdout=subprocess.PIPE)
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=1.5)
        assert machine.session(f"{agent}-{ID}").messages() == []
    assert b"go" in process.communicate(timeout=20)[0]


def test_a_hook_that_is_killed_while_its_agent_waits_is_in_nobodys_way(machine: Machine):
    """Before or behind the fork: what it had begun is done, or nothing is there."""
    begin = TOLD["codex"][0]
    for number in range(6):
        data = json.dumps({"cwd": str(machine.place), **begin[1], "session_id": f"s{number}"}).encode()
        process = machine.start("codex", begin[0], data)
        time.sleep(number * 0.03)
        process.kill()
        process.communicate(timeout=10)
    time.sleep(0.5)
    for number in range(6):
        machine.hook("codex", begin[0], {**begin[1], "session_id": f"s{number}", "turn_id": "next"})
        session = machine.session(f"codex-s{number}")
        assert not session.damage
        assert [e.state for e in session.entries(kind="turn")] in (["begin"], ["begin", "aborted", "begin"])
        session.close()


def test_the_log_of_hooks_does_not_grow_without_end(tmp_path: Path):
    from turnlog.hooks import trace

    path = tmp_path / NAME
    trace.note(str(tmp_path), "codex", "Stop", "s", 0.0, "x" * 10_000)
    line = path.read_bytes()
    assert len(line) < 1000
    path.write_bytes(line * ((1 << 20) // len(line) + 1))
    path.with_name(f"{NAME}.{os.getpid()}").touch(0o600)  # of a process with the same id that was killed at this
    trace.note(str(tmp_path), "codex", "SessionEnd", "s", time.monotonic())
    assert path.stat().st_size < 300_000
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_traces(str(tmp_path))["codex"].last_event == "SessionEnd"
    assert [file.name for file in tmp_path.iterdir()] == [NAME]


FAILED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "claude-code": ("PostToolUseFailure", "Edit", {"hook_event_name": "PostToolUseFailure", "error": "modified since"}),
    "gemini-cli": ("AfterTool", "replace", {"tool_response": {"llmContent": "", "error": {"message": "no match"}}}),
    "copilot-cli": ("postToolUse", "edit", {"toolResult": {"resultType": "failure"}}),
    "pi": ("tool_result", "edit", {"tool_response": {"isError": True}}),
}


@pytest.mark.parametrize("agent", FAILED)
def test_an_edit_that_failed_is_not_declared(machine: Machine, agent: str):
    """It may have failed because somebody else changed that file."""
    (begin, _, _), (event, tool, more) = TOLD[agent], FAILED[agent]
    machine.hook(agent, *begin)
    (machine.place / "a.py").write_text("x = 2\n")
    about = {"session_id": ID, "tool_name": tool, "tool_input": {"file_path": "a.py"}, **more}
    machine.hook(agent, event, about)
    session = machine.session(f"{agent}-{ID}")
    assert [c.when for c in session.checkpoints()] == ["begin", "tool"]
    assert list(session.entries(kind="changed")) == []
