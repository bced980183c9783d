"""What a person sees: a real terminal, read by an emulator."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

import turnlog
from tests.catalog.machine import Machine
from tests.pgserver import Server
from tests.tui.emulator import Emulator
from turnlog.session.interior import interior
from turnlog.thread.home.foreignmarks import append_marks, mark_note, mark_tag

TURNLOG = (sys.executable, "-m", "turnlog")


def test_from_the_list_into_a_session_and_back_in_every_size(machine: Machine):
    with Emulator() as terminal:
        terminal.until("5 sessions, 3 of this folder")
        terminal.type("login")
        terminal.until(lambda shown: shown[-1].startswith("1 session "))
        terminal.press("Enter")
        terminal.until_open("answer 59 is fine")
        terminal.type("[")
        terminal.until("please look at case 59")
        terminal.type("/line 25 of case31")
        terminal.press("Enter")  # it is in folded output, far above
        terminal.until(lambda shown: any("line 25 of case31" in line for line in shown[1:-1]))
        for columns, lines in ((40, 10), (20, 5), (200, 50), (80, 24)):  # the last line says how it was found
            terminal.resize(columns, lines)
            terminal.until(lambda shown, lines=lines: len(shown) == lines and "from the beginning" in shown[-1])
        terminal.press("Escape")  # closes the find
        terminal.until(lambda shown: "/ find" in shown[-1])
        terminal.type("q")
        shown = terminal.until(lambda shown: shown[-1].startswith("1 session "))
        assert shown[0] == "login"
        terminal.press("Ctrl-C")
        assert terminal.end() == 130
        assert terminal.is_given_back()
        assert b"Traceback" not in terminal.written


def test_a_home_in_a_database_and_what_it_says_of_other_agents_sessions(machine: Machine, postgres: Server):
    location = f"{postgres.url}?tenant={uuid.uuid4()}"
    with turnlog.open(location, checkpoints=False) as home:
        home.create(id="far1", title="Kept far away").user("hello from the database")
        append_marks(
            interior(home).creator,
            mark_tag("codex:bbbb2222", "urgent", True),
            mark_note("codex:bbbb2222", "ask Zebedee"),
        )
    with Emulator(TURNLOG_HOME=location) as terminal:
        terminal.until("Kept far away")
        terminal.type("Zebedee")
        terminal.until(lambda shown: "(#urgent)" in shown[1] and shown[-1].startswith("1 session "))
        terminal.press("Enter")
        terminal.until_open("note: ask Zebedee")
        assert "#urgent 1 note" in terminal.shown[0]
        terminal.press("Ctrl-C")
        assert terminal.end() == 130


def test_a_resize_that_nobody_told_of_is_seen(machine: Machine):
    deaf = "import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])"
    command = f"{deaf}; os.execv(sys.executable, [sys.executable, '-m', 'turnlog', 'tui'])"
    with Emulator(sys.executable, "-c", command) as terminal:
        terminal.until(lambda shown: shown[-1].startswith("5 sessions"))
        terminal.resize(100, 30)
        terminal.until(lambda shown: len(shown) == 30 and shown[-1].startswith("5 sessions"))


def test_nothing_chosen_is_no_success_and_no_colours_are_shown_where_nobody_wants_them(machine: Machine):
    with Emulator(*TURNLOG, "pick", is_piped=True, NO_COLOR="1") as terminal:
        terminal.until("5 sessions")
        cells = [cell for row in terminal.screen.buffer.values() for cell in row.values()]
        assert {cell.fg for cell in cells} | {cell.bg for cell in cells} == {"default"}
        assert any(cell.reverse for cell in cells)  # the chosen one stands out all the same
        terminal.press("Escape")
        assert terminal.end() == 1
        assert terminal.process.stdout is not None
        assert terminal.process.stdout.read() == b""


def test_pick_prints_the_name_into_a_pipe_and_nothing_else(machine: Machine):
    with Emulator(*TURNLOG, "pick", "agent:codex", columns=50, lines=12, is_piped=True) as terminal:
        shown = terminal.until("1 session")
        assert shown[-1].startswith("1 session")
        assert shown[-1].endswith("^A this folder")  # as wide as the terminal, though stdout has no size
        terminal.press("Enter")
        assert terminal.end() == 0
        assert terminal.process.stdout is not None
        assert terminal.process.stdout.read() == b"codex:bbbb2222\n"
        assert terminal.is_given_back()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_the_terminal_back(machine: Machine, number: signal.Signals):
    with Emulator() as terminal:
        terminal.until("5 sessions")
        assert not terminal.is_given_back()
        os.kill(terminal.process.pid, number)
        assert terminal.end() == 128 + number
        assert terminal.is_given_back()


def test_it_ends_with_its_terminal(machine: Machine):
    with Emulator() as terminal:
        terminal.until("5 sessions")
        os.close(terminal.slave)
        os.close(terminal.master)
        terminal.master = terminal.slave = -1
        # 120 is Python's own: nobody took what was still to be written.
        assert terminal.process.wait(60) in (1, 120, 129, -signal.SIGHUP)


def test_ctrl_z_and_fg(machine: Machine):
    command = f"set -m; {sys.executable} -m turnlog tui; echo stopped: $?; fg >/dev/null; echo ended: $?"
    with Emulator("bash", "-c", command) as terminal:
        terminal.until("5 sessions")
        terminal.type("log")
        terminal.until("1 session ")
        terminal.press("Ctrl-Z")
        terminal.until(lambda shown: b"stopped: " in terminal.written)  # it may be drawn over by now
        terminal.until(lambda shown: shown[0] == "log" and shown[-1].startswith("1 session "))
        terminal.press("Escape")
        terminal.until("5 sessions")
        terminal.press("Escape")
        terminal.until("ended: 0")
        assert terminal.end() == 0
        assert terminal.is_given_back()


def test_what_is_said_in_sessions_never_drives_the_terminal(machine: Machine):
    with Emulator() as terminal:
        terminal.until("5 sessions")
        terminal.type("session:hostile1\r")  # Enter before anything is answered
        terminal.until_open("bell\\x07 end")
        terminal.type("q")
        terminal.until(lambda shown: shown[-1].startswith("1 session "))
        terminal.until("\\x1b[31m")  # the preview, as it is escaped
        terminal.press("Ctrl-C")
        terminal.end()
        assert terminal.screen.title == ""
        for forbidden in (b"\x1b]0;", b"\x07", b"\x9b", "\u202e".encode(), b"\x1b[2J", b"\x1b[5;5H\xe2"):
            assert forbidden not in terminal.written
        assert terminal.written.count(b"\x1b[?1049l") == 1


def test_a_fault_gives_the_terminal_back_and_then_says_where_the_report_is(machine: Machine, tmp_path: Path):
    broken = (
        "import sys, turnlog.tui.screens.listing as l\n"
        "def fail(*a, **k): raise ZeroDivisionError('of all things')\n"
        "l.list_lines = fail; sys.argv[1:] = ['tui']; import turnlog.cli as c; c.main()"
    )
    with Emulator(sys.executable, "-c", broken, XDG_STATE_HOME=str(tmp_path)) as terminal:
        assert terminal.end() == 1
        assert terminal.is_given_back()
    said = terminal.written.rpartition(b"\x1b[?1049l")[2].decode()
    assert "error: ZeroDivisionError: of all things" in said
    assert "Traceback" not in said
    assert "in fail" in (tmp_path / "turnlog" / "tui-report.txt").read_text()


@pytest.mark.parametrize("name", ["tui", "pick"])
def test_without_a_terminal_it_says_so_in_a_line(machine: Machine, name: str):
    done = subprocess.run([*TURNLOG, name], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (7, "")
    assert done.stderr.startswith(f"error: `turnlog {name}` needs a terminal")
    assert "hint: `turnlog ls --all`" in done.stderr
    assert len(done.stderr.splitlines()) == 2


def test_a_dumb_terminal_is_none(machine: Machine):
    with Emulator(*TURNLOG, "tui", TERM="dumb") as terminal:
        assert terminal.end() == 7
        assert "TERM='dumb' cannot show it" in terminal.text


def test_without_the_extra_it_says_what_to_install(machine: Machine, tmp_path: Path):
    (tmp_path / "textual.py").write_text("raise ModuleNotFoundError('no', name='textual')")
    with Emulator(*TURNLOG, "pick", PYTHONPATH=str(tmp_path)) as terminal:
        assert terminal.end() == 7
        assert "pip install 'turnlog[tui]'" in terminal.text


def test_what_is_replaced_or_called_in_textual_is_there():
    """They are private: another version of Textual may name them differently."""
    from textual.app import App
    from textual.drivers.linux_driver import LinuxDriver
    from textual.widgets import Input

    for place, name in (
        (App, "_fatal_error"), (App, "_close_messages_no_wait"), (App, "_set_pointer_shape"),
        (LinuxDriver, "_get_terminal_size"), (Input, "_cursor_visible"),
    ):  # fmt: skip
        assert hasattr(place, name), name
    assert hasattr(App(), "_exception")
