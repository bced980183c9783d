"""Faults in `catalog`."""

from tests.mutants.mutant import Mutant

COPIES = "tests/catalog/test_copies.py"
MAKING = "tests/catalog/test_making.py"
SERVED = "tests/mcp/test_tools.py"
KEEPING = "tests/cli/test_keep.py"
STATES = "tests/catalog/test_naming.py"

MUTANTS = [
    Mutant(
        "query: a scope holds on the first side of an OR alone",
        "catalog/ask/query.py",
        "first, *rest = (way._replace(filters=(*way.filters, *filters)) for way in self.ways)",
        "first, *rest = self._replace(filters=(*self.filters, *filters)).ways",
        ("tests/mcp/test_tools.py", "tests/catalog/test_query.py"),
    ),
    Mutant(
        "list: one side of an OR shows what only the other asked for",
        "catalog/ask/listing.py",
        "_without(way.filters, everything)",
        "_without([one for side in ways for one in side.filters], everything)",
        ("tests/catalog/test_search.py",),
    ),
    Mutant(
        "marks: a session that is read again is called what its agent calls it",
        "catalog/read/indexer.py",
        """        self._marked.apply(self._batch)
""",
        """        if self._learns:
            self._marked.apply(self._batch)
""",
        ("tests/cli/test_marks.py",),
    ),
    Mutant(
        "catalog: an agent's notes make a second session of what was handed over",
        "catalog/index/settle.py",
        " AND role <> 'note'",
        "",
        ("tests/catalog/test_copies.py",),
    ),
    Mutant(
        "sessions are announced, and nothing says that they are not read",
        "catalog/upkeep.py",
        "            note(SqliteEngine(db), MAKING, 1)\n",
        "            note(SqliteEngine(db), 'made', 1)\n",
        (MAKING,),
    ),
    Mutant(
        "a glance counts as a reading",
        "catalog/index/cards.py",
        "            ending != UNREAD,\n",
        "            True,\n",
        (MAKING,),
    ),
    Mutant(
        "a copy stays hidden although its original is gone",
        "catalog/index/copies.py",
        "        is_repeat = there is not None and not there.is_deleted\n",
        "        is_repeat = True\n",
        (COPIES,),
    ),
    Mutant(
        "keep: what a session spent is only in the cache",
        "catalog/read/gone.py",
        "        self._ledger.put(db, sessions)\n",
        "        pass\n",
        (KEEPING,),
    ),
    Mutant(
        "catalog: a question that nobody waits for is answered",
        "catalog/question.py",
        "        whole._heed(waiter.has_left)  # pyright: ignore[reportPrivateUsage]\n",
        "",
        ("tests/catalog/test_waiter.py",),
    ),
    Mutant(
        "whoever is gone has crashed, known or not",
        "catalog/index/cards.py",
        'return "crashed" if is_there is False and',
        'return "crashed" if',
        (STATES,),
    ),
    Mutant(
        "mcp: a snippet is cut before its secrets are taken out",
        "catalog/ask/search.py",
        'whole = clean(match.text if match.text is not None else texts.get(match.id, ""))',
        'whole = match.text if match.text is not None else texts.get(match.id, "")',
        (SERVED,),
    ),
    Mutant(
        "the catalog of a tenant looks at the machine of whoever runs the service",
        "catalog/__init__.py",
        "(self._given is None or self._given.tenant_name is None)",
        "True",
        ("tests/store/test_tenants.py", "tests/catalog/test_apart.py"),
    ),
    Mutant(
        "bundles: an erased text stays beside its neighbours",
        "catalog/index/bundle.py",
        'texts = ["" if number in numbers else self.text(number)',
        'texts = ["" if number in () else self.text(number)',
        ("tests/session/test_erasing.py",),
    ),
]
