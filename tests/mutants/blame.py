"""Faults in `blame`."""

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "sessions elsewhere are not asked once the last checkpoint is older than the file",
        "rewind/timelinereader.py",
        "return periods if is_current else",
        "return periods if True else",
        ("tests/blame/test_whose.py",),
    ),
    Mutant(
        "every session elsewhere is read for a blame",
        "rewind/timelinereader.py",
        "return first < len(periods) and periods[first].begin <= end",
        "return True",
        ("tests/blame/test_whose.py",),
    ),
    Mutant(
        "of the sessions elsewhere, only those of one file are read for a commit",
        "rewind/timelinereader.py",
        "if is_around or (is_folder and",
        "if is_around or (False and",
        ("tests/blame/test_whose.py",),
    ),
    Mutant(
        "an ignored file that was tracked later has all of its lines from that turn",
        "blame/version.py",
        "if node is None and self._leaves_out(sighting, root, inside):",
        "if False:",
        ("tests/blame/test_whose.py",),
    ),
    Mutant(
        "a file is refused if the newest checkpoint leaves it out, whoever else covers it",
        "blame/authorship.py",
        "        refusals.append(refusal)",
        "        raise refusal",
        ("tests/blame/test_whose.py",),
    ),
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
