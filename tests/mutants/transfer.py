"""Faults in `transfer`."""

from tests.mutants.mutant import Mutant

MOVING = "tests/moving/test_moving.py"
BOTH_SIDES = "tests/moving/test_both_sides.py"
MOVING_DAMAGE = "tests/moving/test_damaged.py"
MOVING_CONTENT = "tests/moving/test_content.py"
MOVING_AT_ONCE = "tests/moving/test_at_once.py"
MOVER = "transfer/mover.py"
RENUMBER = "transfer/renumber.py"
MERGE = "transfer/merge.py"
ERASED_COPIES = "tests/moving/test_erased.py"

MUTANTS = [
    Mutant(
        "erasing: an erased line is another entry to a transfer",
        "transfer/agreement.py",
        "e.unverified or e.void or isinstance(e, _REPEATING)",
        "e.unverified or isinstance(e, _REPEATING)",
        (ERASED_COPIES,),
    ),
    Mutant(
        "erasing: lines on their way bring it back",
        "transfer/erased.py",
        "if item.entry.id in erased_ids and not item.entry.void:",
        "if item.entry.id in erased_ids and item.entry.void:",
        (ERASED_COPIES,),
    ),
    Mutant(
        "blobs are sent while somebody may collect them",
        MOVER,
        "            with keeping_if_writable(source), target.keeping():\n",
        "            with keeping_if_writable(source):\n",
        (MOVING,),
    ),
    Mutant(
        "copies that end alike are taken for the same",
        "transfer/agreement.py",
        "        if after == 0 or not all(item.entry.merges for item in here):\n",
        "        if True:\n",
        (BOTH_SIDES,),
    ),
    Mutant(
        "sessions that end alike are taken for the same",
        "transfer/agreement.py",
        " or there.start is None or mine.merges:\n",
        " or there.start is None:\n",
        (BOTH_SIDES,),
    ),
    Mutant(
        "what another sync brought meanwhile is taken for somebody's work",
        "transfer/agreement.py",
        " or not _agree(outgoing, theirs, divergence.last):\n",
        " or True:\n",
        (MOVING_AT_ONCE,),
    ),
    Mutant(
        "blobs are read while somebody may collect them",
        MOVER,
        "            with keeping_if_writable(source), target.keeping():\n",
        "            with target.keeping():\n",
        (MOVING_CONTENT,),
    ),
    Mutant(
        "a tree is sent although something below it cannot be",
        "transfer/blobs.py",
        "            if not needs.lost.isdisjoint(needs.below.get(name, ())):\n",
        "            if False:\n",
        (MOVING_CONTENT,),
    ),
    Mutant(
        "an edited line becomes right when it is renumbered",
        RENUMBER,
        "    if entry.unverified:\n",
        "    if False:\n",
        (MOVING_DAMAGE,),
    ),
    Mutant(
        "the older of two titles stays",
        MERGE,
        "        if newest is not None and _time_of(newest) > _time_of(entry):\n",
        "        if False:\n",
        (BOTH_SIDES,),
    ),
    Mutant(
        "what is only in the trash there comes back",
        MOVER,
        "            if self._is_in_trash_there(key):\n",
        "            if False:\n",
        (MOVING,),
    ),
    Mutant(
        "an answer that comes from another home belongs to another question",
        "transfer/merge.py",
        "lambda seq: numbers.get(seq, seq)",
        "lambda seq: seq",
        ("tests/session/test_approvals.py",),
    ),
    Mutant(
        "of two homes each believes its own answer",
        "transfer/merge.py",
        "            [appended] = appender.append([_before_theirs(moved, their_entries)])\n",
        "            [appended] = appender.append([moved])\n",
        ("tests/session/test_approvals.py",),
    ),
    Mutant(
        "a question from another home hides that the tool was started",
        "transfer/merge.py",
        "isinstance(their, (Ask, Started)) and",
        "isinstance(their, Ask) and",
        ("tests/session/test_approvals.py",),
    ),
]
