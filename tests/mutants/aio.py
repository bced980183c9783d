"""Faults in `aio`."""

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "a context asks the store while the loop makes a request of it",
        "aio/session.py",
        "                    result.load()  # here, and not on the loop when a request is made of it\n",
        "                    pass\n",
        ("tests/session/test_aio.py",),
    ),
    Mutant(
        "what a cancelled caller opened stays open",
        "aio/threads.py",
        "            undo(result)\n",
        "",
        ("tests/session/test_aio.py",),
    ),
    Mutant(
        "pool: a thread that only wakes up counts as idle",
        "aio/pool.py",
        "                self._idle -= 1\n",
        "                pass\n",
        ("tests/session/test_pool.py",),
    ),
    Mutant(
        "pool: what was cancelled before it began is done all the same",
        "aio/pool.py",
        "            if not future.cancelled():\n",
        "            if True:\n",
        ("tests/session/test_pool.py",),
    ),
    Mutant(
        "pool: Python does not wait for what was submitted",
        "aio/pool.py",
        "        pool.join()\n",
        "        pass\n",
        ("tests/session/test_pool.py",),
    ),
]
