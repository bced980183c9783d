"""Faults in `exchange`."""

from tests.mutants.mutant import Mutant

COPIES = "tests/catalog/test_copies.py"
TOLD = "tests/session/test_told_turns.py"
KEPT = "tests/exchange/test_keeping.py"
KEEPING = "tests/cli/test_keep.py"
IMPORTING = "tests/exchange/test_importing.py"

MUTANTS = [
    Mutant(
        "an ignored file that was tracked later counts as created in an export",
        "exchange/exporting/touchedfile.py",
        "if old is None and overlay.is_left_out(first, earlier, path):",
        "if False:",
        ("tests/exchange/test_transcript.py",),
    ),
    Mutant(
        "a file that is ignored since counts as deleted in an export",
        "exchange/exporting/touchedfile.py",
        "if new is not None or not overlay.is_left_out(last, later, path):",
        "if True:",
        ("tests/exchange/test_transcript.py",),
    ),
    Mutant(
        "an answer that grows a second time is not paid for it",
        "exchange/importing/keyedimport.py",
        "request = growth_id(entry_id, len(entry.blocks))",
        "request = entry_id",
        (IMPORTING,),
    ),
    Mutant(
        "a session of a newer version stops the import of all others",
        "exchange/importing/run.py",
        "except (Corrupt, Invalid, Unsupported) as error:",
        "except (Corrupt, Invalid) as error:",
        (IMPORTING,),
    ),
    Mutant(
        "erasing: an answer that was erased grows again with the next import",
        "exchange/importing/sourceindex.py",
        "len(entry.blocks) if not entry.void else _ALL_BLOCKS",
        "len(entry.blocks)",
        ("tests/session/test_imports.py",),
    ),
    Mutant(
        "what a fork copied is taken for what was asked in its first turn",
        "exchange/importing/turnclaim.py",
        "if not free or (at is not None and self._since is not None and at < self._since):",
        "if not free:",
        ("tests/exchange/test_turnclaim.py",),
    ),
    Mutant(
        "what opencode has written to its WAL is not noticed",
        "exchange/importing/resumestate.py",
        'f"{source.path}-wal"]',
        "]",
        ("tests/formats/test_opencode_growth.py",),
    ),
    Mutant(
        "what was deleted and is kept cannot be imported",
        "exchange/importing/run.py",
        "KeptFiles(creator.created_here.location).readable(source)",
        "KeptFiles(os.devnull).readable(source)",
        (KEEPING,),
    ),
    Mutant(
        "what is handed over costs its money again",
        "exchange/exporting/handover.py",
        "yield written_for(state, agent, version, is_free=True)",
        "yield written_for(state, agent, version)",
        (COPIES,),
    ),
    Mutant(
        "keep: what never reached the disk is taken for kept",
        "exchange/keeping/keptframe.py",
        "                frames.pop()\n",
        "                pass\n",
        (KEPT,),
    ),
    Mutant(
        "keep: a shorter file takes the place of a longer one",
        "exchange/keeping/keptfile.py",
        "            if has_more:\n",
        "            if False:\n",
        (KEPT,),
    ),
    Mutant(
        "hooks: what an agent writes down after a rewind takes it back",
        "exchange/importing/sourceindex.py",
        "        return self.moved > 0 and all(turn.seq < self.moved for turn in turns)",
        "        return False",
        (TOLD,),
    ),
    Mutant(
        "export: ignored files of any folder are taken for those of another",
        "log/part.py",
        "other.is_private and other.path == path",
        "other.is_private",
        ("tests/exchange/test_transcript.py",),
    ),
    Mutant(
        "import: a collection comes between a blob and its entry",
        "exchange/importing/entrybatch.py",
        "with self._store.keeping() if blobs else nullcontext():",
        "with nullcontext():",
        ("tests/exchange/test_entrybatch.py",),
    ),
    Mutant(
        "keep: zeros behind a magic number are taken for data",
        "exchange/keeping/keptframe.py",
        "not zstd.unpacked(rest[at:], _CHUNK)",
        "zstd.unpacked(rest[at:], _CHUNK) is None",
        ("tests/exchange/test_keeping.py",),
    ),
]
