"""Faults in `tui`."""

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "tui: an answer to what is no longer in the field is shown",
        "tui/errand.py",
        "                is_wanted = not errand.waiter.has_left()",
        "                is_wanted = True",
        ("tests/tui/test_errand.py",),
    ),
    Mutant(
        "tui: the size is asked of stdout",
        "tui/terminal.py",
        "os.get_terminal_size(2)",
        "os.get_terminal_size(1)",
        ("tests/tui/test_terminal.py",),
    ),
    Mutant(
        "tui: after fg nothing is drawn",
        "tui/browser.py",
        "        self.screen.refresh(layout=True)",
        "        pass",
        ("tests/tui/test_terminal.py",),
    ),
    Mutant(
        "tui: what was overtaken is done all the same",
        "tui/errand.py",
        "            self._waiting = deque(one for one in self._waiting if one.kind != kind)\n",
        "",
        ("tests/tui/test_errand.py",),
    ),
]
