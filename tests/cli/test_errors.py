"""What the command line does when something goes wrong."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import turnlog
from tests.cli.scene import Cli
from turnlog import errors
from turnlog.cli.frame.document import request


def test_an_error_is_one_line_and_a_hint(cli: Cli, session: str):
    done = cli("show", "nobody")
    assert done.code == errors.NotFound.exit_code
    assert done.out == ""
    assert done.err == "error: no session 'nobody'\nhint: `turnlog ls` shows the sessions there are\n"


def test_under_json_it_is_an_object_on_stderr(cli: Cli, session: str):
    done = cli("show", "nobody", "--json")
    assert done.out == ""
    problem = json.loads(done.err)
    assert problem["version"] == 1
    assert problem["error"] == {
        "code": "not_found",
        "message": "no session 'nobody'",
        "hint": "`turnlog ls` shows the sessions there are",
        "exit_code": 3,
        "candidates": [],
    }


def test_several_that_fit_are_named(cli: Cli, folder: Path):
    with turnlog.open() as home:
        home.create(id="abc-1")
        home.create(id="abc-2")
    done = cli("show", "abc")
    assert done.code == errors.Ambiguous.exit_code
    assert [line.split()[0] for line in done.err.splitlines()[1:3]] == ["abc-2", "abc-1"]
    assert "\nerror: 'abc' fits 2 sessions\n" in done.err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("serch", "search"),
        ("list", "ls"),
        ("resmue", "resume"),
        ("cost", "usage"),
        ("help", "--help"),
        ("unarchive", "archive --remove"),
        ("untag", "tag --remove"),
        ("share", "export --to html"),
    ],
)
def test_a_command_that_was_mistyped(process: Cli, typed: str, meant: str):
    done = process(typed)
    assert done.code == 2
    assert done.err.startswith(f"error: no such command {typed!r}\nhint: did you mean `turnlog {meant}`?")


@pytest.mark.parametrize("words", [["nonsense"], ["ls", "--nonsense"], ["log", "--limit", "0"], ["show", "a", "b"]])
def test_what_was_typed_wrongly_exits_with_2(cli: Cli, words: list[str]):
    done = cli(*words)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert "--help`" in done.err


@pytest.mark.parametrize(
    "words",
    [
        ["archive", ""],
        ["star", ""],
        ["title", "", "--remove"],
        ["fork", ""],
        ["rm", ""],
        ["restore", ""],
        ["rewind", "--only", "", "--yes"],
        ["rewind", "--session", "", "--yes"],
        ["mv", "", "."],
        ["push", "--all", ""],
        ["sync", ""],
        ["import", "--all", "--workspace", ""],
        ["export", "--to", "html", "-o", ""],
    ],
)
def test_an_empty_word_names_nothing(cli: Cli, session: str, log: Path, words: list[str]):
    """It comes from a variable that is not set, and means neither this folder nor its newest session."""
    before = log.read_bytes()
    done = cli(*words)
    assert done.code == 2
    assert "it is empty" in done.err
    assert log.read_bytes() == before
    assert list(Path.cwd().iterdir()) == []


def test_an_empty_home_is_the_default_as_an_empty_variable_is(cli: Cli, session: str):
    assert cli("--home", "", "path").code == cli("path", "--home", "").code == 0


LARGE = [
    ["show", "--last"],
    ["log", "--limit"],
    ["watch", "--for", "0", "--last"],
    ["ls", "-n"],
    ["search", "it", "-n"],
]


@pytest.mark.parametrize("words", LARGE)
def test_a_number_may_be_large_and_not_too_large(cli: Cli, session: str, words: list[str]):
    assert cli(*words, str(2**63 - 2)).code == 0
    done = cli(*words, "9" * 20)
    assert done.code == 2
    assert f"{'9' * 20} is too large" in done.err


def test_a_home_of_a_newer_version_is_refused(cli: Cli, folder: Path):
    folder.mkdir()
    (folder / "home.json").write_text('{"layout":99}')
    assert cli("ls").code == errors.Unsupported.exit_code
    (folder / "home.json").write_text("nonsense")
    assert cli("ls").code == errors.Corrupt.exit_code


def broken() -> None:
    raise RuntimeError("a \x1b[31mfault\nin two lines")


def test_a_fault_of_ours_asks_for_debug(cli: Cli, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("turnlog.cli.commands.gc.this_home", broken)
    done = cli("gc")
    assert done.code == 1
    assert "Traceback" not in done.err
    assert done.err.startswith("error: RuntimeError: a \\x1b[31mfault in two lines\nhint: ")
    assert "--debug" in done.err


def test_debug_shows_the_traceback(cli: Cli, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("turnlog.cli.commands.gc.this_home", broken)
    assert "Traceback" in cli("--debug", "gc").err
    assert "Traceback" in cli("gc", "--debug").err


def test_home_may_stand_before_or_behind_the_command(cli: Cli, tmp_path: Path):
    other = tmp_path / "other"
    with turnlog.open(other) as home:
        home.create(title="over there")
    for words in (["--home", str(other), "ls", "--all"], ["ls", "--all", "--home", str(other)]):
        assert "over there" in cli(*words).out


def test_ctrl_c_is_quiet(cli: Cli, monkeypatch: pytest.MonkeyPatch):
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("turnlog.cli.commands.gc.this_home", interrupted)
    done = cli("gc")
    assert (done.code, done.out, done.err) == (130, "", "")


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EAGAIN])
def test_what_the_system_has_no_more_of_is_not_taken_for_a_full_disk(number: int, folder: Path):
    script = (
        "import os, sys\n"
        "from turnlog.cli.errorline import run_to_exit_code as ended\n"
        f"def work(): print('the result'); raise OSError({number}, os.strerror({number}))\n"
        "sys.exit(ended(work))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (8, "the result\n")
    assert done.stderr == f"error: the system: {os.strerror(number)}\nhint: try it again when less is running\n"


def test_ctrl_c_stops_a_real_process_quietly(folder: Path):
    program = "import turnlog.cli.commands.gc as gc, time; gc.this_home = lambda: print(flush=True) or time.sleep(60)"
    start = [sys.executable, "-c", f"{program}; import sys; sys.argv[1:] = ['gc']; import turnlog.cli as c; c.main()"]
    with subprocess.Popen(start, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=20)
    assert (child.returncode, err) == (130, b"")


def test_a_closed_pipe_is_quiet(folder: Path):
    with turnlog.open() as home:
        session = home.create()
        session.append(*(turnlog.Note(text=f"{number} " + "x" * 100) for number in range(2000)))
    program = f"{sys.executable} -m turnlog log; echo $? >&2"
    done = subprocess.run(["sh", "-c", f"({program}) | head -1"], capture_output=True, text=True)
    assert done.stdout.split()[0] == "SEQ"
    assert done.stderr == "141\n"


def test_a_terminal_that_speaks_only_ascii_is_no_reason_to_fail(folder: Path, session: str):
    done = subprocess.run(
        [sys.executable, "-m", "turnlog", "show"],
        capture_output=True,
        env={"TURNLOG_HOME": str(folder), "PYTHONIOENCODING": "ascii", "PATH": ""},
    )
    assert done.returncode == 0
    assert b"\\u2717 1 failed" in done.stdout


def test_a_lost_blob_is_a_warning_and_not_a_failure(cli: Cli, folder: Path):
    with turnlog.open() as home:
        home.create().user("long " * 20_000)
    for pack in (folder / "blobs").iterdir():
        pack.unlink()
    done = cli("show")
    assert done.code == 0
    assert done.err.startswith("warning: no blob sha256:")
    assert "long long" in done.out


def test_json_is_versioned_in_one_place():
    assert request.VERSION == 1


def test_without_a_command_it_says_what_there_is(cli: Cli):
    done = cli()
    assert done.code == 0
    assert "turnlog --help" in done.out
    assert done.err == ""


@pytest.mark.parametrize(
    "words",
    [
        ["ls", "--all", "-w", "."],
        ["search", "--here", "-w", ".", "x"],
        ["search", "--before", "9", "--page", "2", "x"],
        ["usage", "--here", "-w", "."],
        ["rewind", "--continue", "--abort"],
        ["run", "--new", "-s", "k3f9", "true"],
    ],
)
def test_options_that_exclude_each_other_are_refused(cli: Cli, words: list[str]):
    done = cli(*words)
    assert done.code == 2
    assert "do not go together" in done.err
    assert "leave one of them out" in done.err
