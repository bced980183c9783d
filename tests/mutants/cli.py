"""Faults in `cli`."""

from tests.mutants.mutant import Mutant

ROBOT = "tests/cli/test_robot.py"
SCHEMA = "tests/cli/test_schema.py"
SETUP = "tests/cli/test_setup.py"
QUICK = "tests/cli/test_quick.py"

MUTANTS = [
    Mutant(
        "cli: a note drives the terminal",
        "cli/frame/notes.py",
        "    line = one_line(text)\n",
        "    line = text\n",
        ("tests/cli/test_text.py",),
    ),
    Mutant(
        "cli: what is another program's is taken for ours",
        "cli/frame/arguments.py",
        "if any(argument.takes_rest for argument in command.arguments):",
        "if False:",
        (QUICK,),
    ),
    Mutant(
        "cli: a word too many is ignored",
        "cli/frame/arguments.py",
        "    if words:\n        raise UsageError(",
        "    if words and not command.arguments:\n        raise UsageError(",
        (QUICK,),
    ),
    Mutant(
        "cli: a list goes on with the item that was shown last",
        "cli/frame/document/itemlist.py",
        "return positions[0] + 1 if positions",
        "return positions[0] if positions",
        (ROBOT,),
    ),
    Mutant(
        "cli: a field that there is not is no error",
        "cli/frame/document/selection.py",
        "if part not in inside:",
        "if part not in inside and not inside:",
        (ROBOT,),
    ),
    Mutant(
        "cli: the schema of a session forgets its state",
        "cli/fields/session.py",
        '    "state": shape.text("`running`, `waiting`, `idle`, `stopped` or `crashed`"),\n',
        "",
        (SCHEMA,),
    ),
    Mutant(
        "cli: setup takes back what was there before it",
        "cli/setup/part.py",
        "return [name for name in names if name in changed]",
        "return list(names)",
        (SETUP,),
    ),
    Mutant(
        "the index is begun while somebody waits for the first screen",
        "cli/pick/catalog.py",
        "deferred=not is_whole, at_end=True",
        "deferred=not is_whole, at_end=False",
        ("tests/cli/test_quick.py",),
    ),
    Mutant(
        "cli: a gc that is refused has set the limit",
        "cli/commands/gc.py",
        "    expiry = None if older_than is None else",
        "    if folder is not None:\n        _set(folder, limit, trash)\n    expiry = None if older_than is None else",
        ("tests/cli/test_gc.py",),
    ),
    Mutant(
        "cli: files that are hidden are not counted",
        "cli/draw/agenttable.py",
        "more = sum(max(0, len(files) - _SHOWN) for files in (agent.unreadable, agent.damaged))",
        "more = len(agent.unreadable) + len(agent.damaged) - 2 * _SHOWN",
        ("tests/cli/test_presence.py",),
    ),
    Mutant(
        "cli: a finished rewind does not name what stayed",
        "cli/commands/rewind.py",
        '"dry_run": False, **json_outcome(session, entry)}',
        '"dry_run": False, "entry": entry.seq, "result": entry.files}',
        ("tests/cli/test_rewind.py",),
    ),
    Mutant(
        "cli: of sessions that move, those before an error are not named",
        "cli/frame/each.py",
        "return EachOutcome(done, error)",
        "raise",
        ("tests/cli/test_mv.py",),
    ),
    Mutant(
        "cli: an empty text erases every entry",
        "thread/removal/erasing.py",
        "if not text.strip():",
        "if text is None:",
        ("tests/cli/test_erase.py",),
    ),
    Mutant(
        "cli: what became old while the question stood is removed",
        "cli/commands/gc.py",
        "info.id in kept or info.id not in confirmed",
        "info.id in kept",
        ("tests/cli/test_gc.py",),
    ),
    Mutant(
        "cli: an option of another program decides how an error looks",
        "cli/frame/arguments.py",
        'if word == "--" or (takes_rest and not word.startswith("-")):',
        'if word == "--":',
        (ROBOT,),
    ),
]
