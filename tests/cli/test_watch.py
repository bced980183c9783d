"""`turnlog watch`: a session followed while it goes on."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import turnlog
from tests.cli.scene import Cli
from tests.cli.terminal import Terminal
from tests.cli.test_import import claude_file
from turnlog import ToolCall

TURNLOG = ("-m", "turnlog")


class Watching:
    """`turnlog watch` in a process of its own, read line by line."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "turnlog", "watch", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        # What never comes must not hang the test.
        self._end = threading.Timer(30, self.process.kill)
        self._end.start()

    def until(self, wanted: str) -> str:
        assert self.process.stdout is not None
        seen = ""
        while wanted not in seen:
            line = self.process.stdout.readline()
            assert line, f"{wanted!r} never came: {seen!r}"
            seen += line
        return seen

    def line(self) -> dict[str, object]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def interrupt(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGINT)
        assert self.process.stderr is not None
        told = self.process.stderr.read()
        return self.process.wait(), told

    def __enter__(self) -> "Watching":
        return self

    def __exit__(self, *error: object) -> None:
        self._end.cancel()
        self.process.kill()
        self.process.communicate()


def test_ours_as_it_is_written(folder: Path, session: str):
    with Watching(session, "-n", "1") as watching, turnlog.open(checkpoints=False) as home:
        before = watching.until("And now?")
        assert "Looking." not in before, "only the last message"
        resumed = home.resume(session)
        resumed.assistant([ToolCall(id="c9", name="bash", input={"command": "make"})])
        resumed.tool_result("c9", "all is built")
        assert "→ bash  make" in watching.until("✓ all is built")
        code, told = watching.interrupt()
    assert (code, told) == (130, "")


def test_another_agents_file_as_it_grows(folder: Path, tmp_path: Path):
    path = claude_file(tmp_path / "a", 1, "/home/ada/a", turns=5)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:4]))
    with Watching(str(path), "-n", "1") as watching:
        watching.until("answer 1")
        with path.open("a") as file:
            file.write("".join(lines[4:6]) + lines[6][:40])  # in the middle of a line
        watching.until("answer 2")
        with path.open("a") as file:
            file.write(lines[6][40:] + lines[7])
        more = watching.until("answer 3")
        assert "user 3" in more
        assert "answer 2" not in more, "nothing twice"
        assert "problem" not in more, "half a line is no problem yet"
        assert watching.interrupt() == (130, "")
    assert not folder.exists(), "nothing is kept of it"


@pytest.mark.parametrize("flag", ["--json", "--jsonl"])
def test_a_stream_for_programs(folder: Path, session: str, flag: str):
    with Watching(session, flag) as watching, turnlog.open(checkpoints=False) as home:
        first = watching.line()
        assert (first["version"], first["session"]) == (1, session)
        resumed = home.resume(session)
        resumed.assistant("one")
        resumed.set("mood", "fine")
        kinds = [watching.line()["type"] for _ in range(2)]
        assert kinds == ["message", "set"]


def test_only_for_a_while(process: Cli, session: str):
    done = process("watch", session, "--for", "0")
    assert done.code == 0
    assert "And now?" in done.out
    assert process("watch", session, "--for", "0", "-n", "0", "--jsonl").out.count("\n") == 1


def test_ctrl_c_on_a_terminal_is_quiet(session: str):
    with Terminal(*TURNLOG, "watch", session) as terminal:
        terminal.until("Ctrl-C ends it")
        terminal.type("\x03")
        assert terminal.end() == 130
    assert "Traceback" not in terminal.text
    assert "rror" not in terminal.text


def test_a_session_that_is_not_there(process: Cli, folder: Path):
    assert process("watch", "nobody").code == 3
    assert os.environ["TURNLOG_HOME"] == str(folder)


def test_a_result_says_which_call_it_answers_when_nothing_was_shown_before(folder: Path):
    with turnlog.open(checkpoints=False) as home:
        waiting = home.create(workspace=".", id="waiting")
        waiting.user("list them")
        waiting.assistant([ToolCall(id="c1", name="bash", input={"command": "ls -la"})])
        with Watching("waiting", "-n", "0") as watching:
            watching.until("waiting")
            waiting.tool_result("c1", "all of them")
            assert "bash  ls -la" in watching.until("all of them")
