"""Faults in `rewind`."""

from tests.mutants.mutant import Mutant

RELAY = "tests/rewind/test_relay.py"
REWINDS = "tests/rewind/test_rewind_files.py"
INTERRUPTED = "tests/rewind/test_interrupted.py"
ATTACKS = "tests/workspace/test_attacks.py"
RACES = "tests/workspace/test_races.py"
COLLECTING = "tests/rewind/test_collect.py"
ELSEWHERE = "tests/rewind/test_elsewhere.py"
REWINDER = "rewind/rewinder.py"
INTENT = "rewind/intent.py"

MUTANTS = [
    Mutant(
        "a session elsewhere that cannot be read stops a rewind",
        "rewind/timelinereader.py",
        "            if is_elsewhere(row):\n                continue\n",
        "",
        (ELSEWHERE,),
    ),
    Mutant(
        "a session elsewhere is not asked for the folders that others have replaced",
        "rewind/timelinereader.py",
        "if len(state.folders) == MOST_FOLDERS:",
        "if not state.folders:",
        (ELSEWHERE,),
    ),
    Mutant(
        "what came and went inside a turn was not covered in it",
        "rewind/others.py",
        "[*until_end, *_covered_meanwhile(entries, span, until_end)]",
        "until_end",
        (ELSEWHERE,),
    ),
    Mutant(
        "a folder that is not covered at the end is taken for one that the timeline knows",
        "rewind/others.py",
        " and same_root(work.end.roots, root) is not None",
        "",
        (ELSEWHERE,),
    ),
    Mutant(
        "an ignored file that was tracked later counts as created in a diff",
        "rewind/difference.py",
        "item.before is None and overlay.is_left_out(before, root, path)",
        "item.before is None and False",
        ("tests/rewind/test_difference.py",),
    ),
    Mutant(
        "a turn that was cut short owns everything since",
        "rewind/span.py",
        "runs(asdict(writer)) is True",
        "runs(asdict(writer)) is not None",
        ("tests/rewind/test_cut_short.py",),
    ),
    Mutant(
        "a turn that was cut short is sure until the next checkpoint",
        "rewind/span.py",
        "            begun.last_sign, begun.next_checkpoint = self._last, None\n",
        "            begun.last_sign, begun.next_checkpoint = self._last, None\n"
        "        if isinstance(entry, Checkpoint):\n"
        "            for other in self._begun.values():\n"
        "                other.last_sign, other.next_checkpoint = entry, None\n",
        ("tests/rewind/test_cut_short.py",),
    ),
    Mutant(
        "only sessions of the very same folder are asked",
        "rewind/others.py",
        "return any(folder.startswith(other) or other.startswith(folder) for other in self._folders)",
        "return folder in self._folders",
        ("tests/rewind/test_cut_short.py",),
    ),
    Mutant(
        "a killed turn of another session counts as over at its last word",
        "rewind/others.py",
        "if _is_since(row, since) or theirs.state.turn is not None:",
        "if _is_since(row, since):",
        ("tests/rewind/test_cut_short.py",),
    ),
    Mutant(
        "no checkpoint of now before a rewind",
        REWINDER,
        """            before = self._appender.append([draft])[0]\n""",
        "            before = self._files.at_or_before(self._history.state.seq)\n",
        (REWINDS, INTERRUPTED),
    ),
    Mutant(
        "a rewind is made by another plan than the one that was shown",
        REWINDER,
        "                _refuse_other(make(draft), confirmed)\n",
        "                make(draft)\n",
        (REWINDS,),
    ),
    Mutant(
        "a folder in a log is believed",
        INTENT,
        "    if root is None:\n        return False\n",
        "    if root is None:\n        return True\n",
        (ATTACKS,),
    ),
    Mutant(
        "the files of a dead process are not swept up",
        INTENT,
        "        if again:\n            restorer.sweep(steps)\n",
        "",
        (INTERRUPTED,),
    ),
    Mutant(
        "a rewind is not written down before it is begun",
        REWINDER,
        "                return self._appender.append([draft], alone=True)[0]\n",
        "                return draft\n",
        (INTERRUPTED,),
    ),
    Mutant(
        "a rewind that is running is taken for interrupted",
        INTENT,
        '    return int(who.get("pid") or 0) if may_run(who) else 0\n',
        "    return 0\n",
        (f"{INTERRUPTED}::test_nobody_touches_files_while_another_process_is_in_the_middle",),
    ),
    Mutant(
        "a rewind of another machine is finished unasked",
        REWINDER,
        " or (is_elsewhere(intent) and not asked):\n",
        ":\n",
        (INTERRUPTED,),
    ),
    Mutant(
        "a rewind that is finished when asked again counts twice",
        REWINDER,
        "        if finished is not None and not force and _is_same(finished.entry, head):\n",
        "        if False:\n",
        (INTERRUPTED,),
    ),
    Mutant(
        "all that changed during a rewind is taken for its doing",
        "rewind/planner.py",
        """        span = Span(before, after, f"{mark.why} {mark.seq}", paths)\n""",
        """        span = Span(before, after, f"{mark.why} {mark.seq}")\n""",
        (RACES,),
    ),
    Mutant(
        "what a rewind had to leave alone is taken for its doing",
        INTENT,
        ".difference(head.kept)\n",
        "\n",
        (INTERRUPTED,),
    ),
    Mutant(
        "what somebody collected is taken for known",
        "rewind/snapshot.py",
        "        is_all_there = settings.packs.issuperset(seen.packs)\n",
        "        is_all_there = True\n",
        (COLLECTING,),
    ),
    Mutant(
        "what a rewind brought back is followed from the wrong checkpoint",
        "rewind/timelinereader.py",
        "if seq <= head.asof and seq < head.before",
        "if seq < head.before",
        ("tests/blame/test_whose.py",),
    ),
    Mutant(
        "what came behind a turn that was cut short is the turn's",
        "rewind/timelinereader.py",
        "is_doubtful=bool(span.doubt)",
        "is_doubtful=False",
        ("tests/blame/test_whose.py",),
    ),
    Mutant(
        "checkpoints of one millisecond are taken in any order",
        "rewind/timelinereader.py",
        "if len({id(sighting.facts) for sighting in together}) > 1:",
        "if not together:",
        ("tests/rewind/test_two_agents.py",),
    ),
    Mutant(
        "a file that one of several declared is its own, whatever else happened to it",
        "rewind/timeline.py",
        "changes = {*self.changes(numbers, seen), (first, last)}",
        "changes = {(first, last)}",
        ("tests/rewind/test_two_agents.py",),
    ),
    Mutant(
        "of a folder that a session elsewhere tracks, only the folder itself is its own",
        "rewind/others.py",
        "return all(paths is None or is_at_or_below(path, paths) for paths in (self.covered, self.paths))",
        "return all(paths is None or path in paths for paths in (self.covered, self.paths))",
        (ELSEWHERE,),
    ),
    Mutant(
        "what a session elsewhere tracks since its turn began is not its own",
        "rewind/others.py",
        "    for root in work.late:\n",
        "    for root in ():\n",
        (ELSEWHERE,),
    ),
    Mutant(
        "a first turn that began without a checkpoint did nothing",
        "rewind/span.py",
        "if isinstance(entry, Note) and entry.turn is not None and begun is None:",
        "if isinstance(entry, Note) and entry.turn is not None and begun is None and self._last is not None:",
        (ELSEWHERE,),
    ),
    Mutant(
        "what others may have done in turns that were given up is told apart as well",
        "rewind/others.py",
        "view.is_clear = work.is_ordered and view.before is not None and view.after is not None",
        "view.is_clear = True",
        ("tests/rewind/test_two_agents.py",),
    ),
    Mutant(
        "hooks: what is brought in later says that a turn went on",
        "rewind/span.py",
        "    return entry.origin is None and not (begun.is_relayed and isinstance(entry, Turn))",
        "    return True",
        (RELAY,),
    ),
    Mutant(
        "hooks: a turn that is open has all that changed since its last tool",
        "rewind/span.py",
        "            elif begun.is_relayed:  # an interruption is not reported, so the turn may be over",
        "            elif False:",
        (RELAY,),
    ),
    Mutant(
        "hooks: the same beginning told twice is two turns",
        "rewind/relay.py",
        "        return native in (native_of(state.turn), native_of(state.turn_before))",
        "        return False",
        (RELAY,),
    ),
]
