"""Faults in `exchange`."""

from tests.mutants.mutant import Mutant

COPIES = "tests/catalog/test_copies.py"
TOLD = "tests/session/test_told_turns.py"
KEPT = "tests/exchange/test_kept.py"
KEEPING = "tests/cli/test_keep.py"

MUTANTS = [
    Mutant(
        "erasing: an answer that was erased grows again with the next import",
        "exchange/sourceindex.py",
        "len(entry.blocks) if not entry.void else _ALL",
        "len(entry.blocks)",
        ("tests/session/test_imports.py",),
    ),
    Mutant(
        "what a fork copied is taken for what was asked in its first turn",
        "exchange/claim.py",
        "if not free or (at is not None and self._since is not None and at < self._since):",
        "if not free:",
        ("tests/exchange/test_claim.py",),
    ),
    Mutant(
        "what opencode has written to its WAL is not noticed",
        "exchange/carry.py",
        'f"{source.path}-wal"]',
        "]",
        ("tests/formats/test_opencode_growth.py",),
    ),
    Mutant(
        "what was deleted and is kept cannot be imported",
        "exchange/source.py",
        "    with kept_or_there(creator.made.location, source) as there:\n",
        "    with kept_or_there(os.devnull, source) as there:\n",
        (KEEPING,),
    ),
    Mutant(
        "what is handed over costs its money again",
        "exchange/handover.py",
        "    yield written_for(transcript, agent, version, is_free=True)\n",
        "    yield written_for(transcript, agent, version)\n",
        (COPIES,),
    ),
    Mutant(
        "keep: what never reached the disk is taken for kept",
        "exchange/kept.py",
        "                frames.pop()\n",
        "                pass\n",
        (KEPT,),
    ),
    Mutant(
        "keep: a shorter file takes the place of a longer one",
        "exchange/kept.py",
        "            if shrank:\n",
        "            if False:\n",
        (KEPT,),
    ),
    Mutant(
        "hooks: what an agent writes down after a rewind takes it back",
        "exchange/importer.py",
        "        return moved > 0 and all(turn.seq < moved for turn in turns)",
        "        return False",
        (TOLD,),
    ),
]
