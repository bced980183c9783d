"""Faults in `blame`."""

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "a line that git brought is the turn's that ran it",
        "blame/trail.py",
        "            if not step.is_commit:\n                sources.append((step.old, step.new))\n",
        "            if not step.is_commit:\n                pass\n",
        ("tests/blame/test_git.py",),
    ),
    Mutant(
        "of turns at once the first one gets the line",
        "blame/trail.py",
        "            return Verdict(works, SEVERAL, at=at)",
        "            return Verdict(works[:1], at=at)",
        ("tests/blame/test_whose.py",),
    ),
    Mutant(
        "blame: a line without a letter is moved alone",
        "blame/alignment.py",
        "        if tells(old[number]):\n",
        "        if True:\n",
        ("tests/blame/test_model.py", "tests/blame/test_whose.py"),
    ),
    Mutant(
        "blame: a line that moved is new",
        "blame/alignment.py",
        "        _match_moved(old, new, (a, b, c, d), origins)\n",
        "",
        ("tests/blame/test_model.py", "tests/blame/test_whose.py"),
    ),
    Mutant(
        "blame: a version that nobody knows is empty",
        "blame/trail.py",
        "if node is UNTOLD or (digest is not None and self._versions.lines(digest) is None):",
        "if node is UNTOLD:",
        ("tests/blame/test_model.py", "tests/blame/test_whose.py", "tests/blame/test_live.py"),
    ),
]
