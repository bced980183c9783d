"""Faults in `session`."""

from tests.mutants.mutant import Mutant

BUILDERS = "tests/session/test_builders.py"
INTERRUPTED = "tests/workspace/test_interrupted.py"

MUTANTS = [
    Mutant(
        "the next turn begins on files that are half back",
        "session/session.py",
        """            if when == "begin" and self._state.intent:\n                self._travel.settle()\n""",
        "",
        (INTERRUPTED,),
    ),
    Mutant(
        "two who take the newest message back take the same one",
        "session/session.py",
        "            if after is not None:\n                self._appender.refuse_other_head(seq_of(after))\n",
        "",
        (BUILDERS,),
    ),
    Mutant(
        "compare: what was spent on another branch counts",
        "session/comparison.py",
        "            is_own_branch = entry.to in own_seqs\n",
        "            is_own_branch = True\n",
        ("tests/session/test_compare.py",),
    ),
    Mutant(
        "compare: only the same entries are in common, not the same words",
        "session/comparison.py",
        "        if one.id != other.id and one.says != other.says:\n",
        "        if one.id != other.id:\n",
        ("tests/session/test_compare.py",),
    ),
]
