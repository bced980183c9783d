"""Faults in `blame`."""

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "a line that git brought is the turn's that ran it",
        "blame/gitchange.py",
        "            if not step.is_commit:\n                sources.append(_Source(step.old, step.new))\n",
        "            if not step.is_commit:\n                pass\n",
        ("tests/blame/test_git.py",),
    ),
    Mutant(
        "of turns at once the first one gets the line",
        "blame/trail.py",
        '            return Verdict(works, "several", at=at)',
        "            return Verdict(works[:1], at=at)",
        ("tests/blame/test_whose.py",),
    ),
    Mutant(
        "blame: a line without a letter is moved alone",
        "blame/alignment.py",
        "            if has_word(old[index]):\n",
        "            if True:\n",
        ("tests/blame/test_model.py", "tests/blame/test_whose.py"),
    ),
    Mutant(
        "blame: a line that moved is new",
        "blame/alignment.py",
        "        self._match_moved(part)\n",
        "",
        ("tests/blame/test_model.py", "tests/blame/test_whose.py"),
    ),
    Mutant(
        "blame: a version that nobody knows is empty",
        "blame/trail.py",
        "if node is NOT_RECORDED or (digest is not None and self._versions.lines(digest) is None):",
        "if node is NOT_RECORDED:",
        ("tests/blame/test_model.py", "tests/blame/test_whose.py", "tests/blame/test_live.py"),
    ),
]
