"""Faults in `machine`."""

from tests.mutants.mutant import Mutant

INSTALLING = "tests/hooks/test_install.py"
SERVER_INSTALLING = "tests/mcp/test_install.py"

MUTANTS = [
    Mutant(
        "mcp: who came later is not told that we are gone from a file",
        "machine/edit.py",
        "if theirs is not None and theirs.before == imprint.after:",
        "if False:",
        (SERVER_INSTALLING,),
    ),
    Mutant(
        "hooks: lines that both changed are merged in any case",
        "machine/imprint.py",
        "return merged if merged is not None and same(merged, rest) else rest",
        "return before",
        (INSTALLING,),
    ),
]
