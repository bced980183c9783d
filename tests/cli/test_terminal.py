"""What only a terminal shows: colours, the question, progress, Ctrl-C."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.scene import Cli
from tests.cli.terminal import COLOUR, Terminal

TURNLOG = ("-m", "turnlog")


@pytest.fixture
def changed(folder: Path, process: Cli) -> Path:
    """A folder in which a command changed a file, made one and removed one."""
    (Path.cwd() / "a.txt").write_text("one\n")
    (Path.cwd() / "b.txt").write_text("b\n")
    assert process("run", "--", "sh", "-c", "echo two >> a.txt; rm b.txt; echo new > c.txt").code == 0
    return Path.cwd()


def test_the_question_is_asked_after_the_preview_and_yes_does_it(changed: Path):
    with Terminal(*TURNLOG, "rewind") as terminal:
        terminal.until("rewind? [y/N] ")
        assert "modify  a.txt  changed in turn 1" in terminal.plain
        assert (changed / "c.txt").exists()
        terminal.type("y\n")
        assert terminal.end() == 0
    assert "`turnlog undo` takes it back" in terminal.plain
    assert sorted(path.name for path in changed.iterdir()) == ["a.txt", "b.txt"]
    assert (changed / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("answer", ["\n", "n\n", "what\n", "\x04"])
def test_anything_but_yes_is_no(changed: Path, process: Cli, answer: str):
    before = process("log", "--json").json
    with Terminal(*TURNLOG, "rewind") as terminal:
        terminal.until("[y/N] ")
        terminal.type(answer)
        assert terminal.end() == 1
    assert terminal.text.endswith("nothing was changed\n")
    assert (changed / "c.txt").exists()
    assert process("log", "--json").json == before


@pytest.mark.parametrize("word", ["rewind", "undo", "redo"])
def test_ctrl_c_at_the_question_does_nothing(changed: Path, process: Cli, word: str):
    for step in {"rewind": [], "undo": ["rewind"], "redo": ["rewind", "undo"]}[word]:
        assert process(step, "--yes").code == 0
    before = process("log", "--json").json
    with Terminal(*TURNLOG, word) as terminal:
        terminal.until(f"{word}? [y/N] ")
        terminal.type("\x03")
        assert terminal.end() == 130
    assert "nothing was changed" in terminal.text
    assert "Traceback" not in terminal.text
    assert process("log", "--json").json == before


# The other thread takes the signal, so that no read of this one is interrupted by it: as if it had come just before.
_MISSED = """
import signal, threading
from turnlog.cli.frame.question import ask
threading.Thread(target=threading.Event().wait, daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
ask("rewind?")
"""


def test_ctrl_c_just_before_the_answer_is_read_is_not_missed():
    with Terminal("-c", _MISSED) as terminal:
        terminal.until("rewind? [y/N] ")
        terminal.type("\x03")
        terminal.until("nothing was changed")


def test_colours_are_for_terminals_that_want_them(changed: Path, process: Cli):
    for words in (["diff"], ["diff", "--stat"], ["rewind", "--dry-run"]):
        with Terminal(*TURNLOG, *words) as terminal:
            assert terminal.end() == 0
        assert COLOUR.search(terminal.text), words
        for plain in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            with Terminal(*TURNLOG, *words, **plain) as other:
                assert other.end() == 0
            assert not COLOUR.search(other.text)
            assert other.text == terminal.plain
        assert "\x1b" not in process(*words).out
    with Terminal(*TURNLOG, "diff") as terminal:
        terminal.end()
    assert "\x1b[32m+two\x1b[0m" in terminal.text
    assert "\x1b[31m-b\x1b[0m" in terminal.text


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_tables_fit(changed: Path, process: Cli, columns: int):
    deep = Path("a-folder-with-a-long-name/" * 6)
    deep.mkdir(parents=True)
    process("run", "--", "sh", "-c", f"echo 1 > '{deep}/the-file-itself.txt'")
    with Terminal(*TURNLOG, "rewind", "--dry-run", columns=columns) as terminal:
        assert terminal.end() == 0
    rows = [line for line in terminal.plain.splitlines() if line.startswith(("ACTION", "delete"))]
    assert len(rows) == 2
    assert max(map(len, rows)) <= columns
    assert "the-file-itself.txt" in rows[1]
    with Terminal(*TURNLOG, "checkpoints", columns=columns) as terminal:
        assert terminal.end() == 0
    assert max(map(len, terminal.plain.splitlines())) <= columns
    assert "turn 2 " in terminal.plain


def test_a_command_has_the_terminal_for_itself(folder: Path):
    program = (
        "import os, sys; print([os.isatty(n) for n in (0, 1, 2)], os.get_terminal_size().columns, input('name? '))"
    )
    with Terminal(*TURNLOG, "run", "--", sys.executable, "-c", program, columns=77) as terminal:
        terminal.until("name? ")
        terminal.type("Ada\n")
        assert terminal.end() == 0
    assert "[True, True, True] 77 Ada" in terminal.text
    assert "nothing changed" in terminal.text


def test_ctrl_c_reaches_the_command_once_and_the_turn_still_ends(folder: Path, process: Cli):
    program = (
        "import signal, sys, time, pathlib; n = []\n"
        "signal.signal(signal.SIGINT, lambda *_: n.append(1))\n"
        "print('ready', flush=True)\n"
        "while not n: time.sleep(0.01)\n"
        "time.sleep(0.2)  # where another one would come\n"
        "pathlib.Path('made.txt').write_text(str(len(n))); sys.exit(7)"
    )
    with Terminal(*TURNLOG, "run", "--", sys.executable, "-c", program) as terminal:
        terminal.until("ready")
        terminal.type("\x03")
        assert terminal.end() == 7
    assert Path("made.txt").read_text() == "1"
    assert "created  made.txt" in terminal.plain
    assert process("checkpoints", "--json").json["checkpoints"][-1]["when"] == "end"


def test_ctrl_c_ends_a_command_that_does_not_care(folder: Path, process: Cli):
    # No shell: one that is about to start another program holds the signal back until that one has ended.
    program = (
        "import pathlib, signal, time; signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "pathlib.Path('made.txt').write_text('half'); print('ready', flush=True); time.sleep(60)"
    )
    with Terminal(*TURNLOG, "run", "--", sys.executable, "-c", program) as terminal:
        terminal.until("ready\n")
        terminal.type("\x03")
        assert terminal.end() == 128 + signal.SIGINT
    assert "`turnlog rewind` takes it back" in terminal.plain
    turns = [entry for entry in process("log", "--json").json["entries"] if entry["type"] == "turn"]
    assert [turn["state"] for turn in turns] == ["begin", "aborted"]
    assert process("rewind", "--yes").code == 0
    assert not Path("made.txt").exists()


def test_long_work_says_how_far_it_is_and_cleans_up(folder: Path):
    for number in range(1100):
        Path(f"{number}.txt").write_text("")
    impatient = "import sys, turnlog.cli.frame.progress as p; p._AFTER_S = p._EVERY_S = -1.0; "
    call = impatient + "sys.argv[1:] = ['checkpoint']; import turnlog.cli as c; c.main()"
    with Terminal("-c", call) as terminal:
        assert terminal.end() == 0
    shown, cleared, rest = terminal.text.rpartition("\r\x1b[K")
    assert "scanning … 1," in shown
    assert cleared
    assert rest.startswith("checkpoint, entry ")
    piped = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, env=dict(os.environ))
    assert piped.stderr == ""
