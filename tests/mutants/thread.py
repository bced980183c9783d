"""Faults in `thread`."""

from tests.mutants.mutant import Mutant

LIMIT = "tests/rewind/test_limit.py"
CRASHES = "tests/store/test_crash_states.py"
ERRORS = "tests/store/test_io_errors.py"
PROCESSES = "tests/store/test_processes.py"
DOUBT = "tests/store/test_doubt.py"
BUILDERS = "tests/session/test_builders.py"
COLLECTING = "tests/rewind/test_collect.py"
GIVEN_UP = "tests/rewind/test_given_up.py"
PRICES = "tests/pricing/test_pricing.py"
RUNS = "tests/cli/test_run.py"
INTERRUPTS = "tests/session/test_interrupts.py"

ERASING = "tests/session/test_erasing.py"

MUTANTS = [
    Mutant(
        "a session that cannot be opened leaves its log open",
        "thread/history.py",
        "    except BaseException:\n        history.close()\n        raise\n    return history\n",
        "    finally:\n        pass\n    return history\n",
        ("tests/session/test_closed.py",),
    ),
    Mutant(
        "marks: what is said of others' sessions goes with old sessions",
        "thread/removal/expiry.py",
        """    if placed.row.id == MARKS or (keep(""",
        """    if (keep(""",
        ("tests/cli/test_marks.py",),
    ),
    Mutant(
        "a repeated entry is said twice",
        "thread/history.py",
        "            if entry.again and self.is_repeat(entry):\n                wanted",
        "            if False:\n                wanted",
        (ERRORS,),
    ),
    Mutant(
        "a fork builds on what is not synced",
        "thread/home/creator.py",
        "            history.log.sync(at)",
        "            pass",
        (f"{CRASHES}::test_a_fork_never_inherits_what_came_after_it",),
    ),
    Mutant(
        "an entry is appended without its blobs",
        "thread/batch.py",
        "    if blobs:\n        derived.put(store, blobs)\n",
        "",
        (CRASHES,),
    ),
    Mutant(
        "collecting does not ask what was appended while it looked",
        "thread/space/garbage.py",
        "        self._needed = all_needed(self._store, needed, self._needed)\n        # Damage",
        "        # Damage",
        (COLLECTING,),
    ),
    Mutant(
        "collecting reads everything while it keeps everybody out",
        "thread/space/garbage.py",
        "        needed = needs(self._store, self._cache)\n        self._needed",
        "        needed = needs(self._store)\n        self._needed",
        (COLLECTING,),
    ),
    Mutant(
        "collecting writes packs while it keeps everybody out",
        "thread/space/garbage.py",
        "self._store.collect(self._without_rest, expected=self._needed)\n",
        "self._store.collect(self._without_rest)\n",
        (COLLECTING,),
    ),
    Mutant(
        "collecting gives up what an interrupted rewind needs",
        "thread/space/garbage.py",
        "        needed.busy.add(first)\n",
        "        pass\n",
        (COLLECTING,),
    ),
    Mutant(
        "a session gives up the checkpoints of another",
        "thread/space/garbage.py",
        "if kept.name in dropped])\n",
        "if kept.id in {name for _, name in dropped}])\n",
        (COLLECTING,),
    ),
    Mutant(
        "a tree goes with its content, and not before",
        "thread/space/garbage.py",
        "        if gone or self._drop is not None:\n"
        "            self._store.collect(self._without_roots, expected=_AllBut(gone), strictly=True)\n",
        "        if gone or self._drop is not None:\n"
        "            self._store.collect(lambda: [self._without_roots(), _AllBut(())][1], expected=_AllBut(()))\n"
        "            self._without_rest = lambda: all_needed(self._store, needs(self._store, self._known))\n",
        (GIVEN_UP,),
    ),
    Mutant(
        "only the session that holds a checkpoint knows that it was given up",
        "thread/space/checkpointcontent.py",
        "    lacking |= derived.lacking(store, trees - lacking) if trees - lacking else set()\n",
        "",
        (GIVEN_UP,),
    ),
    Mutant(
        "after an interrupt the state is taken to be whole",
        "thread/appender.py",
        "the log and our state may differ now.\n            self._is_stale = True\n",
        "the log and our state may differ now.\n",
        (INTERRUPTS,),
    ),
    Mutant(
        "what an interrupted append left is a conflict with oneself",
        "thread/appender.py",
        " and item.id not in self._unacknowledged_ids:\n",
        ":\n",
        (INTERRUPTS,),
    ),
    Mutant(
        "a forked process keeps the locks of its parent's threads",
        "thread/history.py",
        "        self.mutex = threading.RLock()\n\n    @property\n    def store",
        "        pass\n\n    @property\n    def store",
        (PROCESSES,),
    ),
    Mutant(
        "a fold is believed to know all before it",
        "thread/history.py",
        "            if state is not None and item.seq <= state.seq:\n",
        "            if state is not None:\n",
        (DOUBT,),
    ),
    Mutant(
        "price: a fork pays for its parent",
        "thread/sessioncost.py",
        "return history.forward(history.inherited_to)",
        "return history.forward()",
        (PRICES,),
    ),
    Mutant(
        "what fits into so many tokens begins with a result",
        "thread/compaction.py",
        "            if _may_begin(own, index):\n",
        "            if True:\n",
        ("tests/session/test_kept.py",),
    ),
    Mutant(
        "summary: what is kept is summarised as well",
        "thread/compaction.py",
        "*cut.rest], before=cut.first)",
        "*cut.rest], before=0)",
        ("tests/seeds/test_claw_features.py",),
    ),
    Mutant(
        "summary: an earlier one is quoted",
        "thread/summary.py",
        "        if summary is not None:",
        "        if summary is not None and not summary.requests:",
        ("tests/session/test_summary.py",),
    ),
    Mutant(
        "who is introduced has seen what others wrote before",
        "thread/appender.py",
        "if alone and (self._has_foreign_nodes or state.seq > seq + is_new):",
        "if alone and self._has_foreign_nodes:",
        (BUILDERS,),
    ),
    Mutant(
        "a short way back brings back the facts of now",
        "thread/target.py",
        "        elif isinstance(entry, Head) and entry.asof < asof:\n            return None",
        "        elif isinstance(entry, Head) and entry.asof < 0:\n            return None",
        (BUILDERS,),
    ),
    Mutant(
        "a compaction hides what came after the context it sums up",
        "thread/compaction.py",
        "cut_for_keep(rest, keep.count(rest), seen=seen)",
        "cut_for_keep(rest, keep.count(rest), seen=None)",
        ("tests/session/test_random_programs.py",),
    ),
    Mutant(
        "a safety net is as good as a conversation",
        "thread/report.py",
        'return state.start.get("agent") == SAFETY_NET_AGENT and not spoken',
        "return False",
        (RUNS,),
    ),
    Mutant(
        "limit: the newest session of a folder may go",
        "thread/space/garbage.py",
        "live = {row.first for row in store.listing()} - {*spared}",
        "live = {row.first for row in store.listing()}",
        (LIMIT,),
    ),
    Mutant(
        "limit: the last tool of a turn that was cut goes like any other",
        "thread/space/garbage.py",
        'tools[item.turn] = [kept] if item.when == "tool" else []',
        'kept.is_inside, tools[item.turn] = item.when == "tool", []',
        (LIMIT,),
    ),
    Mutant(
        "erasing: the intent goes before the blobs do",
        "thread/removal/erasing.py",
        "        try:\n            freed = forget_unneeded(store, set(plan.blobs))",
        "        eraser.settle(name)\n        try:\n            freed = forget_unneeded(store, set(plan.blobs))",
        (f"{ERASING}::test_killed_anywhere_it_is_finished_or_untouched",),
    ),
    Mutant(
        "a tool that was denied is started",
        "thread/call/approval.py",
        """    if opened.state in ("waiting", "denied"):""",
        """    if opened.state in ("waiting",):""",
        ("tests/session/test_approvals.py",),
    ),
    Mutant(
        "whoever answers second is not told",
        "thread/call/approval.py",
        "        if opened is None or opened.answer == answered.seq:\n",
        "        if True:\n",
        ("tests/session/test_approvals.py",),
    ),
    Mutant(
        "expiry: what is used while everything is read goes",
        "thread/removal/expiry.py",
        '            removal.remove(waiting[-1], "session", after=waiting[-1].last_seq)\n',
        '            removal.remove(waiting[-1], "session", after=None)\n',
        ("tests/session/test_purging.py",),
    ),
    Mutant(
        "expiry: a fork goes although what it was made of is in use",
        "thread/removal/expiry.py",
        "    used = next((placed for placed in waiting if _has_grown(store, placed)), None)\n",
        "    used = None\n",
        ("tests/session/test_purging.py",),
    ),
    Mutant(
        "folds: what could not be looked at again is not looked at any more",
        "thread/history.py",
        "            self._recent = []\n            self.state,",
        "            self._recent, self._version = [], version\n            self.state,",
        ("tests/session/test_folds.py",),
    ),
]
