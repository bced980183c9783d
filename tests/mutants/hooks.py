"""Faults in `hooks`."""

from tests.mutants.mutant import Mutant

INSTALLING = "tests/hooks/test_install.py"
LAUNCHING = "tests/machine/test_launcher.py"

MUTANTS = [
    Mutant(
        "hooks: a user's place behind ours moves when ours goes",
        "hooks/entries.py",
        "if agent.file.keeps_places and one.group < len(groups) - 1:",
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
        "hooks/install.py",
        "        _refuse_others(path, before, agent)\n",
        "",
        ("tests/hooks/test_install.py",),
    ),
    Mutant(
        "hooks: a file of somebody else is removed",
        "hooks/install.py",
        "        if program_of(text_of(path, before), agent.name) is None:\n            return []\n",
        "",
        ("tests/hooks/test_install.py",),
    ),
]
