"""Faults in `session`."""

from tests.mutants.mutant import Mutant

BUILDERS = "tests/session/test_builders.py"
INTERRUPTED = "tests/rewind/test_interrupted.py"

MUTANTS = [
    Mutant(
        "the next turn begins on files that are half back",
        "session/session.py",
        """            if when == "begin" and self._state.intent:\n                self._rewinder.settle()\n""",
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
        "session/comparison/side.py",
        "            self._stands_at_own = entry.to in self._own_nodes\n",
        "            self._stands_at_own = True\n",
        ("tests/session/test_compare.py",),
    ),
    Mutant(
        "compare: only the same entries are in common, not the same words",
        "session/comparison/beginning.py",
        "        if of_a.id != of_b.id and of_a.content_hash != of_b.content_hash:\n",
        "        if of_a.id != of_b.id:\n",
        ("tests/session/test_compare.py",),
    ),
]
