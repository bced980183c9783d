"""A session whose whole name is said is found where the catalog saw it last, if it still is there alone."""

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.cli.machine import claude_session, settle
from tests.cli.scene import Cli
from turnlog.machine.environment import default_home
from turnlog.reader.naming.lastseen import last_seen

ID = "0d4a6d4c-3a51-4c0c-8d0e-7f2b1c3d4e5f"
NAME = f"claude-code:{ID}"


@pytest.fixture
def path(process: Cli) -> Path:
    made = claude_session(Path(os.environ["HOME"]), "/work", ID, "say something")
    settle(process)
    return made


def seen(name: str = NAME) -> tuple[str, str, str, str | None] | None:
    return last_seen(default_home(), name)


def test_it_is_where_it_was(path: Path, process: Cli):
    assert seen() == (ID, "claude-code", str(path), "/work")
    path.write_text(path.read_text().replace("say something", "say another thing"))
    assert "say another thing" in process("show", NAME).out


def test_one_that_was_moved_is_looked_for(path: Path, process: Cli):
    there = path.parent.parent / "-elsewhere"
    there.mkdir()
    path.rename(there / path.name)
    assert seen() is None
    assert "say something" in process("show", NAME).out


def test_one_that_is_gone_is_told(path: Path, process: Cli):
    path.unlink()
    assert seen() is None
    done = process("show", NAME)
    assert (done.code, done.err.splitlines()[0]) == (3, f"error: no session {NAME!r}")


def test_of_two_with_one_name_none_is_taken(path: Path, process: Cli):
    there = path.parent.parent / "-elsewhere"
    there.mkdir()
    shutil.copy(path, there / path.name)
    settle(process)
    assert seen() is None


def test_eight_digits_are_enough_where_no_other_session_has_them(path: Path, process: Cli):
    for name in (ID[:8], ID[:9], ID[:20], ID):
        assert seen(name) == seen(), name
    claude_session(Path(os.environ["HOME"]), "/work", ID[:-1] + "0", "say another thing")
    settle(process)
    assert seen(ID[:8]) is None
    assert seen(ID) == seen()
    assert "fits 2 sessions" in process("show", ID[:8]).err


def test_what_is_no_whole_name_is_left_to_the_catalog(path: Path):
    for name in ("", ID[:7], ID[1:], ID[:8].upper(), NAME[:-1], "claude-code:", "odd:\0", "odd:\udc80"):
        assert seen(name) is None, name


def test_nor_is_a_catalog_that_cannot_be_read(path: Path):
    assert last_seen(None, NAME) is None
    assert last_seen("/nowhere", NAME) is None
    [file] = Path(os.environ["HOME"], ".cache/turnlog").glob("*.sqlite")
    file.unlink()
    sqlite3.connect(file).close()
    assert seen() is None
