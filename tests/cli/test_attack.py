"""A session that is out to harm whoever looks at it: every command, on a terminal and piped."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import turnlog
from tests.cli.every import NAMES, WORDS, prepare
from tests.cli.scene import Cli
from tests.cli.terminal import COLOUR, Terminal
from turnlog import Message, Text, Thinking, ToolCall, Usage

# Titles of the window, colours, the cursor, the bell, a return, a backspace, C1, bidirectional controls, separators.
EVIL = "\x1b]0;owned\x07\x1b[31m\x1b[2J\x9b1A\r\x08\x7f\u202eevil\u2066\u200f\u2028\x00"
NAME = EVIL.replace("\x00", "")
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]"
)
OURS = re.compile(r"\r\x1b\[K|\x1b\[[0-9;]*m|\x1b\]8;;[ -~]*\x1b\\|\x1b\[K")
"""What Turnlog itself does to a terminal: colours, and a line of progress that goes away."""


@pytest.fixture
def hostile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a session in which everything that can be chosen was chosen badly."""
    workspace = Path.cwd() / f"a{NAME}folder"
    workspace.mkdir()
    monkeypatch.chdir(workspace)
    (workspace / f"{NAME}.txt").write_text("one\n")
    with turnlog.open() as home:
        session = home.create(
            id=f"evil{EVIL}", workspace=workspace, agent=EVIL, title=EVIL, labels={EVIL: EVIL}, resume=["agent", EVIL]
        )
        session.checkpoint(EVIL)
        with session.turn():
            session.system(EVIL)
            session.user(f"flaky {EVIL}", agent=EVIL)
            blocks = [
                Thinking(text=EVIL), Text(f"# {EVIL}\n```{EVIL}\n{EVIL}\n```\n[{EVIL}](http://{EVIL})"),
                ToolCall(id=EVIL, name=EVIL, input={EVIL: EVIL, "command": EVIL, "file_path": EVIL}),
                ToolCall(id="open", name=EVIL, input=EVIL),
            ]  # fmt: skip
            session.assistant(blocks, model=EVIL, usage=Usage(input_tokens=3, output_tokens=1), request=EVIL)
            session.tool_result(EVIL, f"{EVIL}\n" * 3, is_error=True)
            (workspace / f"{NAME}.txt").write_text(f"{EVIL}\n")
            (workspace / f"new{NAME}").write_text(EVIL)
        with pytest.raises(RuntimeError), session.turn():
            raise RuntimeError(EVIL)
        session.note(EVIL, data={EVIL: EVIL})
        session.set("tags", [EVIL])
        session.set(EVIL, EVIL)
        session.append(turnlog.Custom(kind=EVIL, data={EVIL: EVIL}))
        session.append(Message(role="user", blocks=[turnlog.Image(media_type=EVIL, data=b"AAAA", name=EVIL)]))
        session.compact(EVIL, keep=1)
        session.fork(name=EVIL, id=f"fork{EVIL}").user(EVIL)
        session.spawn(agent=EVIL, call=EVIL, role=EVIL, id=f"child{EVIL}").user(EVIL)
    return session.id


def is_harmless(text: str) -> None:
    left = OURS.sub("", text)
    found = UNSAFE.search(left)
    assert found is None, f"{left[max(0, found.start() - 60) : found.start() + 60]!r}"


# Where a command takes the session, and what else it is asked.
VARIANTS = {
    "show": [[], ["--context"], ["--full"], ["--last", "2"]],
    "log": [[], ["--reverse"], ["--kind", "message"]],
    "diff": [[], ["--stat"], ["--turn", "1"]],
    "doctor": [[]],
    "ls": [[], ["--all"]],
    "rewind": [["--dry-run"], ["--dry-run", "turn:1"]],
    "compact": [["--dry-run", "--keep", "0"]],
    "resume": [[], ["--in", "sofos"], ["--in", "codex"]],
}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("demo", "completion")])
def test_nothing_reaches_the_terminal(name: str, hostile: str, cli: Cli):
    for more in VARIANTS.get(name, [WORDS.get(name, [])]):
        prepare(cli, name)
        words = [name, *more]
        with Terminal("-m", "turnlog", *words, PAGER="cat") as terminal:
            terminal.end()
        assert terminal.text
        is_harmless(terminal.text)
        prepare(cli, name)
        piped = subprocess.run([sys.executable, "-m", "turnlog", *words], capture_output=True, check=False)
        assert b"Traceback" not in piped.stderr
        is_harmless(piped.stderr.decode())
        if name != "path":  # a path is for programs where it is piped
            is_harmless(piped.stdout.decode())


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("demo", "completion", "run", "import")])
def test_nothing_in_an_error_reaches_the_terminal(name: str, hostile: str):
    for words in ([name, NAME], [name, "-s", NAME], [name, f"--{NAME}"], [name, "--json", NAME]):
        with Terminal("-m", "turnlog", *words, PAGER="cat") as terminal:
            terminal.end()
        is_harmless(terminal.text)


def test_several_that_fit_are_listed_harmlessly(hostile: str, folder: Path):
    with turnlog.open() as home:
        home.create(id=f"evil{EVIL}2", title=EVIL, agent=EVIL)
    with Terminal("-m", "turnlog", "show", "evil\x1b") as terminal:
        assert terminal.end() == 3
    assert "2 sessions" in terminal.text
    is_harmless(terminal.text)
    assert COLOUR.sub("", terminal.text).count("\\x1b]0;owned") >= 4


def test_completion_leaves_it_out(hostile: str):
    for shell, words in (("bash", ["turnlog show "]), ("zsh", ["show", ""]), ("fish", ["show", ""])):
        surroundings = {**os.environ, "_TURNLOG_COMPLETE": shell}
        call = [sys.executable, "-m", "turnlog", *words]
        done = subprocess.run(call, capture_output=True, env=surroundings, check=True)
        is_harmless(done.stdout.decode())
