"""Faults in `log`."""

from tests.mutants.mutant import Mutant

CRASHES = "tests/store/test_crash_states.py"
DOUBT = "tests/store/test_doubt.py"
FORKS = "tests/session/test_forks.py"
BOTH_SIDES = "tests/moving/test_both_sides.py"
HOMES = "tests/store/test_homes.py"

MUTANTS = [
    Mutant(
        "an unfinished batch counts",
        "log/assemble.py",
        "    if following is None:\n        return True\n",
        "    if following is None:\n        return False\n",
        (CRASHES,),
    ),
    Mutant(
        "what says `sealed` seals nothing",
        "log/assemble.py",
        "    return following.entry.sealed > 0 and",
        "    return False and",
        (CRASHES,),
    ),
    Mutant(
        "a fold is believed although somebody edited it",
        "log/fold/__init__.py",
        "    if entry.unverified or entry.state is None or",
        "    if entry.state is None or",
        (DOUBT,),
    ),
    Mutant(
        "a fold is believed although it was counted by other rules",
        "log/fold/__init__.py",
        " or entry.rules != RULES:\n",
        ":\n",
        (HOMES,),
    ),
    Mutant(
        "a fold is believed whatever it claims to know",
        "log/fold/__init__.py",
        "    return state if state.seq == entry.upto else None\n",
        "    return state\n",
        (DOUBT,),
    ),
    Mutant(
        "what a fork inherits counts as its own",
        "log/fold/__init__.py",
        "    child.models, child.requests, child.peak, child.counts = {}, [], 0, Counts()\n",
        "    child.requests = []\n",
        (FORKS,),
    ),
    Mutant(
        "what undo needs keeps its old number",
        "log/entry.py",
        "    undoes: EntryRef = 0\n",
        "    undoes: Number = 0\n",
        (BOTH_SIDES,),
    ),
    Mutant(
        "what was said while a provider compacted is not sent",
        "log/context/nativecompaction.py",
        "    later = [one for one in before if one.seq > at.last]\n",
        "    later = [one for one in before if one.seq > message.seq]\n",
        ("tests/wire/test_native_compaction.py",),
    ),
    Mutant(
        "a provider's compaction is sent on a branch that it never saw",
        "log/context/__init__.py",
        "        last = max(head_seqs, default=0)\n",
        "        last = max(head_seqs, default=1)\n",
        ("tests/wire/test_native_compaction.py",),
    ),
    Mutant(
        "everything waits while a long text is counted",
        "log/context/tokens.py",
        "    if len(text) <= _PIECE:\n",
        "    if True:\n",
        ("tests/log/test_prompt.py",),
    ),
    Mutant(
        "erasing: of several facts that a line repeats, one goes",
        "log/erasure/line.py",
        "            self._parts.setdefault((one.id, one.seq if one.part else 0), set()).add(one.part)\n",
        "            self._parts[one.id, one.seq if one.part else 0] = {one.part}\n",
        ("tests/session/test_erasing.py",),
    ),
    Mutant(
        "adapter: a text that is edited away is JSON for ever",
        "log/item.py",
        """            raise Mismatch(f"{where} is not JSON any more") from None""",
        """            return text""",
        ("tests/adapters/test_items.py",),
    ),
    Mutant(
        "adapter: bytes for URLs come back as plain base64",
        "log/item.py",
        """(urlsafe_b64encode if letter == "w" else b64encode)""",
        """b64encode""",
        ("tests/adapters/test_items.py",),
    ),
]
