"""Faults in `rewind`."""

from tests.mutants.mutant import Mutant

RELAY = "tests/rewind/test_relay.py"
REWINDS = "tests/rewind/test_rewind_files.py"
INTERRUPTED = "tests/rewind/test_interrupted.py"
ATTACKS = "tests/workspace/test_attacks.py"
RACES = "tests/workspace/test_races.py"
COLLECTING = "tests/rewind/test_collect.py"
REWINDER = "rewind/rewinder.py"
INTENT = "rewind/intent.py"

MUTANTS = [
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
        "    if step.root not in covered:\n        return False\n    if not step.raw:  # the folder itself\n"
        "        return True\n    tracked, is_partial = covered[step.root]\n",
        "    tracked, is_partial = covered.get(step.root, (frozenset(), False))\n",
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
        "if len({id(facts) for _, facts in pairs}) > 1:",
        "if not pairs:",
        ("tests/rewind/test_two_agents.py",),
    ),
    Mutant(
        "a file that one of several declared is its own, whatever else happened to it",
        "rewind/timeline.py",
        "steps = {*self.changes(numbers, seen), (first, last)}",
        "steps = {(first, last)}",
        ("tests/rewind/test_two_agents.py",),
    ),
    Mutant(
        "what others may have done in turns that were given up is told apart as well",
        "rewind/others.py",
        "is_clear = all(view.is_turn and view.before is not None and view.after is not None for view in seen)",
        "is_clear = True",
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
