"""A first index is read by two processes. Whatever happens to the second one, the index is the same."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.catalog.machine import Machine, same
from turnlog.catalog.read import foreign, indexer
from turnlog.catalog.read.helper import Helper, Piece

COMPLETE = """
import sys
from turnlog.catalog import Catalog
from turnlog.catalog.read import indexer
indexer._HELPER_BYTES = 0
with Catalog(sys.argv[1]) as catalog:
    catalog.complete()
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path, monkeypatch)
    monkeypatch.setattr(indexer, "_HELPER_BYTES", 0)
    for number in range(6):
        (made.claude if number % 2 else made.codex)(f"s{number}", 4)
    (made.user / ".claude/projects/-work/\udcff.jsonl").write_bytes(made.claude("odd", 2).read_bytes())
    (made.user / ".claude/projects/-work/nothing.jsonl").write_text('{"type": "queue-operation"}\n')
    (made.user / ".claude/projects/-work/folder.jsonl").mkdir()
    made.ours("mine", 3)
    made.settle()
    return made


def test_another_process_reads_and_it_comes_to_the_same(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    with machine.catalog() as catalog, machine.fresh() as fresh:
        with monkeypatch.context() as patched:
            patched.setattr(foreign, "read_session", None)  # whoever calls it here has a problem
            catalog.complete()
        assert catalog.standing().pending == 0
        same(catalog, fresh)
        fresh.sync()
        assert catalog.ask(_prices) == fresh.ask(_prices)
        machine.claude("s1", 2)
        same(catalog, fresh)


def _prices(indexes: Any) -> str:
    [[prices]] = indexes[0].engine.rows("SELECT value FROM meta WHERE key = 'prices'")
    return prices


@pytest.mark.parametrize("pieces", [0, 1, 2])
def test_one_that_ends_too_soon_leaves_the_rest_to_the_other(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, pieces: int
):
    read, ended = Helper._pieces, 0

    def kill(self: Helper, *pipes: Any) -> Iterator[Piece]:
        nonlocal ended
        for number, piece in enumerate(read(self, *pipes)):
            if number == pieces:
                assert self._process is not None
                self._process.kill()
                ended += 1
                raise EOFError
            yield piece

    monkeypatch.setattr(Helper, "_pieces", kill)
    large = machine.claude("s1", 4)  # what it said comes in several pieces
    large.write_text(large.read_text().replace("haystack", "haystack " * 40_000))
    machine.settle()
    with machine.catalog() as catalog, machine.fresh() as fresh:
        catalog.complete()
        same(catalog, fresh)
    assert ended == 1


@pytest.mark.parametrize("executable", ["/bin/false", "/nothing/here", ""])
def test_where_none_can_be_begun_everything_is_read_here(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, executable: str
):
    with monkeypatch.context() as patched, machine.catalog() as catalog, machine.fresh() as fresh:
        patched.setattr(sys, "executable", executable)
        catalog.complete()
        same(catalog, fresh)


def test_none_is_begun_where_that_is_forbidden(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TURNLOG_BACKGROUND", "off")
    monkeypatch.setattr(subprocess, "Popen", None)
    with machine.catalog() as catalog, machine.fresh() as fresh:
        catalog.complete()
        same(catalog, fresh)


def test_it_ends_with_whoever_began_it(machine: Machine):
    text = (machine.user / ".claude/projects/-work/s1.jsonl").read_text()
    for number in range(15):
        (machine.user / f".claude/projects/-work/long{number}.jsonl").write_text(
            text.replace('"s1', f'"l{number}') * 40
        )
    machine.settle()
    process = subprocess.Popen([sys.executable, "-c", COMPLETE, str(machine.home)])
    child = _child(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 20
    while os.path.exists(f"/proc/{child}"):
        assert time.monotonic() < deadline, "it goes on alone"
        time.sleep(0.02)
    with machine.catalog() as catalog, machine.fresh() as fresh:
        catalog.complete()
        same(catalog, fresh)


def _child(pid: int) -> int:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for found in filter(str.isdecimal, os.listdir("/proc")):
            try:
                words = Path("/proc", found, "cmdline").read_bytes().split(b"\0")
                parent = int(Path("/proc", found, "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == pid and b"turnlog.catalog.read.helper" in words:
                return int(found)
        time.sleep(0.005)
    raise AssertionError("nobody was begun")


def test_the_location_is_not_in_the_arguments():
    """It may be that of a database with a password, and every user of the machine can list the arguments."""
    with Helper("postgresql://user:secret@host/database") as helper:
        process = helper._started()
        listed = subprocess.run(
            ["ps", "-o", "args=", "-p", str(process.pid)], capture_output=True, text=True, check=True
        ).stdout
        assert "turnlog.catalog.read.helper" in " ".join(map(str, process.args))  # pyright: ignore[reportArgumentType]
        assert "secret" not in listed + str(process.args)
