"""Faults in `aio`."""

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "a context asks the store while the loop makes a request of it",
        "aio/session.py",
        "                    made.load()  # here, and not on the loop when a request is made of it\n",
        "                    pass\n",
        ("tests/session/test_aio.py",),
    ),
]
