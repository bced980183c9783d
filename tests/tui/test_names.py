"""Names that fit several sessions, on a terminal."""

from __future__ import annotations

import sys

import pytest

import turnlog
from tests.catalog.machine import Machine
from tests.tui.emulator import Emulator
from tests.tui.test_terminal import TURNLOG


@pytest.fixture(scope="module")
def several(machine: Machine) -> None:
    for id in ("several-one", "several-two"):
        with turnlog.open(str(machine.home), checkpoints=False) as home, home.create(id=id, title=id) as session:
            session.user(f"this is {id}")


@pytest.mark.usefixtures("several")
def test_a_name_that_fits_several_opens_the_list_of_them(machine: Machine):
    with Emulator(*TURNLOG, "show", "several", "--no-pager") as terminal:
        terminal.until("2 sessions")
        terminal.type(" two")
        terminal.until(lambda shown: shown[-1].startswith("1 session "))
        terminal.press("Enter")
        assert terminal.end() == 0
        assert "this is several-two" in terminal.text


@pytest.mark.usefixtures("several")
@pytest.mark.parametrize("words", [("show",), ("resume",), ("resume", "--exec")])
def test_without_the_extra_it_lists_them_with_the_hint(machine: Machine, words: tuple[str, ...]):
    without = "import sys; sys.modules['textual'] = None; import turnlog.cli; turnlog.cli.main()"
    with Emulator(sys.executable, "-c", without, *words, "several") as terminal:
        assert terminal.end() == 3
        assert terminal.shown[1].startswith("several-")
        assert {"several-one", "several-two"} == {line.split()[0] for line in terminal.shown[1:3]}
        assert "choose from a list: pip install 'turnlog[tui]'" in " ".join(terminal.shown)
        assert b"\x1b[?1049h" not in terminal.written
