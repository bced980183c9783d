"""Faults in `hooks`."""

from tests.mutants.mutant import Mutant

INSTALLING = "tests/hooks/test_install.py"
LAUNCHING = "tests/machine/test_launcher.py"

MUTANTS = [
    Mutant(
        "hooks: a user's place behind ours moves when ours goes",
        "hooks/entries.py",
        "if file.keeps_places and entry.group < len(groups) - 1:",
        "if False:",
        (INSTALLING,),
    ),
    Mutant(
        "hooks: a program that is gone is not looked for",
        "hooks/call.py",
        '2>/dev/null || :"',
        '"',
        (LAUNCHING,),
    ),
    Mutant(
        "hooks: a file that somebody else wrote is replaced",
        "hooks/ownfile.py",
        'if before is not None and call_in(before.decode(errors="replace"), self._agent.name) is None:',
        "if False:",
        ("tests/hooks/test_install.py",),
    ),
    Mutant(
        "hooks: a file of somebody else is removed",
        "hooks/ownfile.py",
        "if before is None or call_in(text_of(self.path, before), self._agent.name) is None:",
        "if before is None:",
        ("tests/hooks/test_install.py",),
    ),
]
