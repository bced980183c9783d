"""What the system refuses is no fault of Turnlog's: one line says what could not be done, and the rest is done."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.scene import Cli, Done
from tests.cli.test_import import claude_file
from turnlog import errors

_AS_ANYBODY = """
import ctypes, os, sys
for capability in (1, 2):  # root may read and write everything
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-m", "turnlog", *sys.argv[1:]])
"""


@pytest.fixture
def anybody(folder: Path) -> Cli:
    """Run a command in a process that may do only what the modes of files allow."""
    if os.geteuid() == 0 and not hasattr(ctypes.CDLL(None), "prctl"):
        pytest.skip("root may do anything here")

    def call(*words: str) -> Done:
        done = subprocess.run([sys.executable, "-c", _AS_ANYBODY, *words], capture_output=True, encoding="utf-8")
        return Done(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def claude(folder: Path) -> Path:
    place = Path(os.environ["HOME"]) / ".claude" / "projects" / "webshop"
    place.mkdir(parents=True)
    return claude_file(place, 1, os.getcwd())


def test_the_doctor_names_a_folder_of_sessions_that_nobody_may_read(anybody: Cli, claude: Path):
    codex = Path(os.environ["HOME"]) / ".codex"
    (codex / "sessions").mkdir(parents=True)
    codex.chmod(0)
    done = anybody("doctor")
    codex.chmod(0o700)
    assert "~/.codex/sessions: it cannot be read: Permission denied" in done.out
    assert "claude-code" in done.out
    assert done.err == ""


@pytest.mark.parametrize("command", ["show", "import", "resume"])
def test_a_file_that_nobody_may_read_is_not_said_to_hold_nothing(anybody: Cli, claude: Path, command: str):
    claude.chmod(0)
    done = anybody(command, str(claude))
    claude.chmod(0o600)
    assert done.code == errors.Unavailable.exit_code
    assert done.err.startswith(f"error: {claude} cannot be read: Permission denied\nhint: ")


def test_an_export_goes_nowhere_where_it_may_not(anybody: Cli, session: str, tmp_path: Path):
    locked = tmp_path / "locked"
    locked.mkdir(0)
    done = anybody("export", session, "-o", str(locked / "x.html"))
    locked.chmod(0o700)
    assert (done.code, done.out) == (errors.Unavailable.exit_code, "")
    assert done.err.startswith(f"error: {locked / 'x.html'} could not be written: Permission denied\n")


def test_whatever_else_is_refused_is_no_fault_of_ours(anybody: Cli, session: str, tmp_path: Path):
    locked = tmp_path / "locked"
    locked.mkdir(0)
    done = anybody("mv", str(tmp_path / "old"), str(locked / "new"))
    locked.chmod(0o700)
    assert done.code == errors.Unavailable.exit_code
    assert done.err.startswith(f"error: {locked / 'new'}: Permission denied\nhint: check ")


def test_an_export_below_a_file_says_that_it_is_no_folder(cli: Cli, session: str, tmp_path: Path):
    (tmp_path / "file").write_text("mine")
    done = cli("export", session, "-o", str(tmp_path / "file" / "x.html"))
    assert done.code == errors.Unavailable.exit_code
    assert f"{tmp_path / 'file' / 'x.html'} could not be written: Not a directory" in done.err
    assert (tmp_path / "file").read_text() == "mine"


def test_a_home_that_is_a_file(cli: Cli, folder: Path):
    folder.write_text("mine")
    done = cli("ls", "--all")
    assert done.code == errors.Unavailable.exit_code
    assert (
        done.err == f"error: opening {folder}: Not a directory\nhint: a home is a folder: choose another place for it\n"
    )
