"""`r` in a session: the screen is left, and the agent goes on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.catalog.machine import Machine
from tests.tui.emulator import Emulator

ID = "0b1f6a8e-3c2d-4e5f-8a9b-0c1d2e3f4a5b"


@pytest.fixture(scope="module", autouse=True)
def claude(machine: Machine) -> None:
    machine.claude(ID)


def test_r_leaves_the_screen_and_becomes_the_agent(machine: Machine, tmp_path: Path):
    agent = tmp_path / "claude"
    agent.write_text('#!/bin/sh\necho "pid=$$ argv=$*"\necho "cwd=$PWD"\nread line\necho "heard=$line"\nexit 3\n')
    agent.chmod(0o755)
    with Emulator(PATH=f"{tmp_path}:{os.environ['PATH']}", cwd=str(tmp_path)) as terminal:
        terminal.until("6 sessions")
        terminal.type(f"session:{ID}\r")
        terminal.until_open("the needle is there")
        terminal.type("r")
        terminal.until("cwd=")
        assert terminal.is_given_back()  # before the agent has it
        terminal.type("hello\r")
        assert terminal.end() == 3
    said = terminal.written.rpartition(b"\x1b[?1049l")[2].decode().splitlines()
    assert f"pid={terminal.process.pid} argv=--resume {ID}" in said  # the same process: nothing waits behind it
    assert f"cwd={machine.work}" in said
    assert "heard=hello" in said


def test_r_without_its_agent_says_what_is_missing(machine: Machine, tmp_path: Path):
    (tmp_path / "python").symlink_to(sys.executable)
    with Emulator(PATH=str(tmp_path)) as terminal:
        terminal.until("6 sessions")
        terminal.type(f"session:{ID}\r")
        terminal.until_open("the needle is there")
        terminal.type("r")
        assert terminal.end() == 127
        assert terminal.is_given_back()
    said = terminal.written.rpartition(b"\x1b[?1049l")[2].decode()
    assert "error: no command 'claude'" in said
    assert "hint: install it, and run this again" in said
