"""Faults in `cli`."""

from tests.mutants.mutant import Mutant

ROBOT = "tests/cli/test_robot.py"
SCHEMA = "tests/cli/test_schema.py"
SETUP = "tests/cli/test_setup.py"
QUICK = "tests/cli/test_quick.py"

MUTANTS = [
    Mutant(
        "cli: what is another program's is taken for ours",
        "cli/frame/arguments.py",
        "if any(argument.is_rest for argument in command.arguments):",
        "if False:",
        (QUICK,),
    ),
    Mutant(
        "cli: a word too many is ignored",
        "cli/frame/arguments.py",
        "    if words:\n        raise Misused(",
        "    if words and not command.arguments:\n        raise Misused(",
        (QUICK,),
    ),
    Mutant(
        "cli: a list goes on with the item that was shown last",
        "cli/frame/itemlist.py",
        "return positions[0] + 1 if positions",
        "return positions[0] if positions",
        (ROBOT,),
    ),
    Mutant(
        "cli: a field that there is not is no error",
        "cli/frame/selection.py",
        "if part not in inside:",
        "if part not in inside and not inside:",
        (ROBOT,),
    ),
    Mutant(
        "cli: the schema of a session forgets its state",
        "cli/draw/listing.py",
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
]
