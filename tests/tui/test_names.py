"""Names that fit several sessions, on a terminal."""

from __future__ import annotations

import turnlog
from tests.catalog.machine import Machine
from tests.tui.emulator import Emulator
from tests.tui.test_terminal import TURNLOG


def test_a_name_that_fits_several_opens_the_list_of_them(machine: Machine):
    for id in ("several-one", "several-two"):
        with turnlog.open(str(machine.home), checkpoints=False) as home, home.create(id=id, title=id) as session:
            session.user(f"this is {id}")
    with Emulator(*TURNLOG, "show", "several", "--no-pager") as terminal:
        terminal.until("2 sessions")
        terminal.type(" two")
        terminal.until(lambda shown: shown[-1].startswith("1 session "))
        terminal.press("Enter")
        assert terminal.end() == 0
        assert "this is several-two" in terminal.text
