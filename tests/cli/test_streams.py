"""What every command does when its streams are not what it hoped for."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.cli.every import NAMES, QUIET, prepare, share
from tests.cli.scene import Cli, write_session
from tests.cli.terminal import COLOUR, Terminal

TURNLOG = [sys.executable, "-m", "turnlog"]
# They print nothing of their own accord that could be lost.
SPEAKING = [name for name in NAMES if name not in (*QUIET, "demo")]
TROUBLE = re.compile("^(error|warning|Traceback|Exception)", re.MULTILINE)
ASCII = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def ran(words: list[str], **how: Any) -> subprocess.CompletedProcess[bytes]:
    how = {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE, **how}
    return subprocess.run([*TURNLOG, *words], check=False, **how)


@pytest.mark.parametrize("name", share(SPEAKING, 0))
def test_a_reader_that_has_seen_enough_is_no_error(name: str, cli: Cli, session: str):
    for more in ([], ["--json"]):
        words = prepare(cli, name)
        reader, writer = os.pipe()
        os.close(reader)
        done = ran([words[0], *more, *words[1:]], stdout=writer)
        os.close(writer)
        assert done.returncode == 141
        assert not TROUBLE.search(done.stderr.decode())


def buffered() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def test_an_exit_code_is_what_it_is_where_nobody_reads_the_notes(cli: Cli, session: str):
    """Python would try once more to write what is left of them when it ends, and then say 120."""
    reader, writer = os.pipe()
    os.close(reader)
    full = os.open("/dev/full", os.O_WRONLY)
    for words, *codes in ((["show", "nobody"], 141, 3), (["fork", session], 141, 8), (["log", session], 0, 0)):
        how = {"stdout": subprocess.DEVNULL, "env": buffered()}
        assert [ran(words, stderr=stream, **how).returncode for stream in (writer, full)] == codes, words
    os.close(writer)
    os.close(full)


def in_one_pipe(words: list[str], **how: Any) -> str:
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "check": False, **how}
    return subprocess.run([sys.executable, *words], env=buffered(), **how).stdout


def test_in_one_pipe_a_note_stands_behind_the_result_it_is_about():
    work = (
        "import sys; from turnlog.cli.errorline import run_to_exit_code as ended; from turnlog.errors import NotFound\n"
        "def work():\n"
        "    print('result'); print('note', file=sys.stderr); print('more'); raise NotFound('no more')\n"
        "sys.exit(ended(work))"
    )
    assert in_one_pipe(["-c", work]) == "result\nnote\nmore\nerror: no more\n"


def test_a_command_tells_in_one_pipe_what_it_made_and_then_how_to_go_on(cli: Cli, session: str):
    first, note, *_ = in_one_pipe(["-m", "turnlog", "fork", session]).splitlines()
    assert note.startswith(f"`turnlog resume {first.removeprefix('session ').partition(':')[0]}"), first


def test_what_went_wrong_is_told_also_when_nobody_reads_the_result():
    work = (
        "import sys; from turnlog.cli.errorline import run_to_exit_code as ended; from turnlog.errors import NotFound\n"
        "def work(): print('result'); raise NotFound('no more')\n"
        "sys.exit(ended(work))"
    )
    reader, writer = os.pipe()
    os.close(reader)
    start = [sys.executable, "-c", work]
    done = subprocess.run(start, stdout=writer, stderr=subprocess.PIPE, env=buffered(), text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (3, "error: no more\n")


@pytest.mark.parametrize("flags", [[], ["-u"]])
@pytest.mark.parametrize("size", [10, 100_000])
def test_a_full_disk_is_told_however_much_is_printed(flags: list[str], size: int):
    run = "from turnlog.cli.errorline import run_to_exit_code"
    work = f"import sys; {run}; sys.exit(run_to_exit_code(lambda: print('x' * {size})))"
    with Path("/dev/full").open("wb") as full:
        start = [sys.executable, *flags, "-c", work]
        done = subprocess.run(start, stdout=full, stderr=subprocess.PIPE, env=buffered(), text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (8, 2)
    assert done.stderr.startswith("error: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize("name", share(SPEAKING, 1))
def test_a_full_disk_behind_stdout_is_one_line(name: str, cli: Cli, session: str):
    words = prepare(cli, name)
    with Path("/dev/full").open("wb") as full:
        done = ran(words, stdout=full)
    assert done.returncode == 8
    told = done.stderr.decode()
    assert "error: the output cannot be written: No space left on device\nhint: " in told
    assert len(TROUBLE.findall(told)) == 1


@pytest.mark.parametrize("name", share(NAMES, 2))
def test_a_closed_stdout_is_refused_before_anything_is_done(name: str, cli: Cli, session: str, log: Path):
    words = prepare(cli, name)
    before = log.read_bytes()
    script = '"$@" >&-'
    done = subprocess.run(["sh", "-c", script, "sh", *TURNLOG, *words], stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 8
    assert done.stderr.startswith("error: stdout is closed\nhint: ")
    assert log.read_bytes() == before


@pytest.mark.parametrize("name", share([name for name in NAMES if name != "demo"], 0))
def test_neither_stdin_nor_stderr_is_needed(name: str, cli: Cli, session: str):
    words = prepare(cli, name)
    script = '"$@" <&- 2>&-'
    done = subprocess.run(["sh", "-c", script, "sh", *TURNLOG, *words], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0


def test_what_a_command_prints_does_not_end_up_in_a_log_when_streams_are_closed(process: Cli, session: str, log: Path):
    script = '"$@" <&- 2>&-'
    words = ["run", "-q", "-s", session, "--", "sh", "-c", "echo out; echo err >&2; cat"]
    done = subprocess.run(["sh", "-c", script, "sh", *TURNLOG, *words], stdout=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "out\n")
    assert process("doctor").code == 0
    assert all(line.startswith(b"{") for line in log.read_bytes().splitlines())


@pytest.mark.parametrize("name", [*(name for name in NAMES if name != "demo"), *share(["demo"], 1)])
def test_a_machine_that_speaks_only_ascii(name: str, cli: Cli, folder: Path):
    with turnlog.open(checkpoints=False) as home:
        write_session(home, title="Prüfung der Größe – 測試", agent="ägent")
    words = prepare(cli, name)
    done = ran(words, stdout=subprocess.PIPE, env={**os.environ, **ASCII})
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    done.stdout.decode("ascii")
    if name not in share(NAMES, 1):
        return  # JSON is UTF-8 for all of them, wherever it is printed
    words = prepare(cli, name)
    as_json = ran([words[0], "--json", *words[1:]], stdout=subprocess.PIPE, env={**os.environ, **ASCII})
    assert as_json.returncode == 0, as_json.stderr
    as_json.stdout.decode("utf-8")


@pytest.mark.parametrize("name", share([name for name in NAMES if name != "demo"], 2))
def test_colours_go_away(name: str, cli: Cli, session: str):
    # Each command in one of the two ways: one place decides for all of them.
    plain = {"NO_COLOR": "1"} if NAMES.index(name) % 2 else {"TERM": "dumb"}
    words = prepare(cli, name)
    with Terminal("-m", "turnlog", *words, PAGER="cat", **plain) as terminal:
        assert terminal.end() == 0
    assert not COLOUR.search(terminal.text)
    assert "\x1b" not in terminal.text or "NO_COLOR" in plain, "a line of progress is no colour"
