"""A session that is out to harm whoever looks at it: every command, on a terminal and piped."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import turnlog
from tests.cli.every import NAMES, prepare, words_for
from tests.cli.scene import Cli
from tests.cli.terminal import COLOUR, Terminal
from turnlog import Message, Text, Thinking, ToolCall, Usage
from turnlog.cli.draw.table import Column, grid, table
from turnlog.cli.draw.text import plain
from turnlog.cli.frame.document.escaping import safe_json
from turnlog.view.visible import safe

# Titles of the window, colours, the cursor, the bell, a return, a backspace, C1, bidirectional controls, separators,
# and what nobody sees.
UNSEEN = "\ufeff\u200b\u00ad\u2060\u115f\U000e0041\U000e007f\U000e0100"
EVIL = f"\x1b]0;owned\x07\x1b[31m\x1b[2J\x9b1A\r\x08\x7f\u202eevil\u2066\u200f\u2028{UNSEEN}\x00"
NAME = EVIL.replace("\x00", "")
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff"
    "\ufeff\u200b\u00ad\u2060\u115f\U000e0000-\U000e0fff]"
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


@pytest.fixture
def elsewhere(hostile: str) -> Path:
    """The same of another agent: the names of its file and folder, its id, its title, its folder, what was said."""
    path = Path(os.environ["HOME"]) / ".claude" / "projects" / f"p{NAME}" / f"f{NAME}.jsonl"
    path.parent.mkdir(parents=True)
    about = {"sessionId": f"i{EVIL}", "cwd": str(Path.cwd()), "timestamp": "2026-01-01T00:00:00Z", "version": EVIL}
    said = {"type": "user", "uuid": "u1", "parentUuid": None, "message": {"role": "user", "content": f"flaky {EVIL}"}}
    lines = [{**about, **said}, {"type": "summary", "summary": EVIL, "leafUuid": "u1"}, {"type": EVIL, "x": EVIL}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + f'{{"{NAME}\n')
    return path


ON_FILES = {
    "import": [["{path}"], ["--all"], ["--json", "{path}"]],
    "show": [["{path}"], ["--json", "{path}"], ["{path}", "--key", NAME]],
    "ls": [["--all"], ["--all", "--json"]],
    "search": [["flaky"], ["--json", "flaky"]],
    "usage": [["--by", "session"], ["--by", "workspace"]],
    "path": [["claude-code:"]],
    "tree": [["{path}"]],
    "export": [["{path}", "--to", "markdown"], ["{path}", "--to", "codex", "-o", "out{name}"]],
    "resume": [["{path}"], ["{path}", "--in", "codex"], ["{path}", "--exec"]],
    "doctor": [["{path}"]],
    "watch": [["{path}", "--for", "0"]],
    "push": [["--all", "../copy{name}"]],
    "mv": [["--dry-run", "{path}", "{path}2"]],
}


ON_A_TERMINAL = ("import", "show", "ls", "path")


@pytest.mark.parametrize("name", ON_FILES)
def test_the_names_of_files_are_harmless_in_every_column(name: str, elsewhere: Path, cli: Cli):
    for number, more in enumerate(ON_FILES[name]):
        words = [name, *(word.format(path=elsewhere, name=NAME) for word in more)]
        if number == 0 and name in ON_A_TERMINAL:
            with Terminal("-m", "turnlog", *words, PAGER="cat", columns=2000) as terminal:
                terminal.end()
            assert "f\\x1b" in terminal.text or name == "ls"
            is_harmless(terminal.text)
        done = cli(*words)
        assert "this is a fault in turnlog" not in done.err
        is_harmless(done.err)
        if name != "path":  # a path is for programs where it is piped
            is_harmless(done.out)


def test_a_table_makes_every_cell_safe_itself():
    rows = [[EVIL, EVIL, EVIL], [NAME, "a\nb\tc", "d"]]
    for paths in (None, 0, 1, 2):
        lines = table(("A", "B", "C"), rows, paths=paths)
        assert len(lines) == 3
        assert not any(UNSAFE.search(line) or "\n" in line or "\t" in line for line in lines)
    lines = grid([Column("A", [EVIL, "x"]), Column("B", ["a\nb", NAME], right=True), Column("C", ["", EVIL])])
    assert not any(UNSAFE.search(line) or "\n" in line for line in lines)


def test_what_is_not_seen_is_shown():
    for character in [*UNSEEN, *map(chr, range(0xE0000, 0xE0080))]:
        assert safe(f"a{character}b").isascii(), hex(ord(character))
        assert plain(f"a{character}b").isascii()
        assert json.loads(safe_json(json.dumps(f"a{character}b", ensure_ascii=False).encode())) == f"a{character}b"
        assert safe_json(json.dumps(character, ensure_ascii=False).encode()).isascii()
    for text in ("👨\u200d👩\u200d👧", "می\u200cخواهم", "❤\ufe0f", "1\ufe0f\u20e3", "naïve – “ok”"):
        assert safe(text) == text
    assert safe("pay\u200dpal") == "pay\\u200dpal"


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
    for more in VARIANTS.get(name, [words_for(name)]):
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
    with Terminal("-m", "turnlog", "show", "evil\x1b", TERM="dumb") as terminal:
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
