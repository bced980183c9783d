"""Faults in `compaction`."""

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "a policy clears what is to be kept",
        "compaction.py",
        ", len(logged) - kept_count\n",
        ", len(logged)\n",
        ("tests/session/test_policy.py",),
    ),
    Mutant(
        "a policy clears what a provider compacted",
        "compaction.py",
        "        start, end = 0 if native is None else native.message,",
        "        start, end = 0,",
        ("tests/wire/test_native_compaction.py",),
    ),
    Mutant(
        "compaction: what is cleared already is cleared again",
        "compaction.py",
        "for seq, fewer in saved.items() if fewer > 0}",
        "for seq, fewer in saved.items()}",
        ("tests/session/test_policy.py",),
    ),
    Mutant(
        "compaction: half a summary is one",
        "compaction.py",
        '    if answer.stop not in (None, "end"):\n',
        "    if False:\n",
        ("tests/session/test_policy.py",),
    ),
    Mutant(
        "compaction: what a failed summary cost is not counted",
        "compaction.py",
        "        if answer.usage is not None:\n            session.spend",
        "        if False:\n            session.spend",
        ("tests/session/test_policy.py",),
    ),
    Mutant(
        "compaction: results are cleared although that is not enough",
        "compaction.py",
        "if edits and tokens - saved <= self.limit:",
        "if edits:",
        ("tests/session/test_policy.py",),
    ),
    Mutant(
        "compaction: an empty summary is one",
        "compaction.py",
        'return "" if text_of(answer.blocks).strip() else "the summary is empty"',
        'return ""',
        ("tests/session/test_policy.py",),
    ),
]
