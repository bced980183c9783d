"""Faults in `catalog`."""

from tests.mutants.mutant import Mutant

GROWTH = "tests/catalog/test_growth.py"
REPAIR = "tests/catalog/test_repair.py"
CONTAINED = "tests/catalog/test_contained.py"
COPIES = "tests/catalog/test_copies.py"
MAKING = "tests/catalog/test_making.py"
SERVED = "tests/mcp/test_tools.py"
KEEPING = "tests/cli/test_keep.py"
STATES = "tests/catalog/test_naming.py"

MUTANTS = [
    Mutant(
        "query: a scope holds on the first side of an OR alone",
        "catalog/ask/query.py",
        "first, *rest = (side._replace(filters=(*side.filters, *filters)) for side in self.sides)",
        "first, *rest = self._replace(filters=(*self.filters, *filters)).sides",
        ("tests/mcp/test_tools.py", "tests/catalog/test_query.py"),
    ),
    Mutant(
        "list: one side of an OR shows what only the other asked for",
        "catalog/ask/listing.py",
        "_without(side.filters, everything)",
        "_without([one for each in sides for one in each.filters], everything)",
        ("tests/catalog/test_search.py",),
    ),
    Mutant(
        "marks: a session that is read again is called what its agent calls it",
        "catalog/read/indexer.py",
        """        self._marked.apply(self._batch)
""",
        """        if self._marks_changed:
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
        "            set_note(SqliteEngine(db), MAKING)\n",
        "            set_note(SqliteEngine(db), 'made')\n",
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
        "        is_repeat = original is not None and not original.is_deleted\n",
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
        "catalog/serialized.py",
        "    set_check(waiter.has_left)\n",
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
        "catalog/ask/hits.py",
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
        "catalog: texts of a damaged log are added a second time",
        "catalog/read/own.py",
        "        batch.write_out()\n",
        "",
        (GROWTH,),
    ),
    Mutant(
        "catalog: a result does not know the call that was read before",
        "catalog/read/counts.py",
        "        counts.calls = {id: (tool, at) for id, (tool, at) in calls.items()}\n",
        "        counts.calls = {}\n",
        (GROWTH,),
    ),
    Mutant(
        "catalog: to rebuild it keeps an index that nobody has replaced",
        "catalog/__init__.py",
        "            self._local.replace_index()\n",
        "            self._local.replace_damaged_index()\n",
        (REPAIR,),
    ),
    Mutant(
        "catalog: a text that cannot be unpacked stays so",
        "catalog/index/sqlite/damage.py",
        "isinstance(error, Damaged) or ",
        "",
        (REPAIR,),
    ),
    Mutant(
        "catalog: one file at which a glance fails stops the index of all",
        "catalog/glance/survey.py",
        "    except Exception:  # no file",
        "    except OverflowError:  # no file",
        (CONTAINED,),
    ),
    Mutant(
        "catalog: one damaged row of the ledger stops every new index",
        "catalog/index/sqlite/ledger.py",
        "    except (zlib.error, msgspec.MsgspecError, TypeError):\n",
        "    except TypeError:\n",
        (CONTAINED,),
    ),
    Mutant(
        "web: the last prompt pays what the whole session spent",
        "catalog/index/detail.py",
        "until = BEYOND - 1 if last is None",
        "until = BEYOND + 1 if last is None",
        ("tests/catalog/test_detail.py",),
    ),
    Mutant(
        "bundles: an erased text stays beside its neighbours",
        "catalog/index/sqlite/bundle.py",
        'texts = ["" if number in numbers else self.text(number)',
        'texts = ["" if number in () else self.text(number)',
        ("tests/session/test_erasing.py",),
    ),
]
