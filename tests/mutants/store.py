"""Faults in `store`."""

from tests.mutants.mutant import Mutant

SHOWN = "tests/session/test_live.py"

MUTANTS = [
    Mutant(
        "a slow listener loses what its pipe does not take",
        "store/broadcast.py",
        "                yield _encode(Delta(self.id, piece, kind, block, at))\n"
        "                sent[block], is_silent = at + len(piece), False\n",
        "                sent[block], is_silent = at + len(piece), False\n"
        "                yield _encode(Delta(self.id, piece, kind, block, at))\n",
        (SHOWN,),
    ),
]
