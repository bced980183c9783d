"""Faults in `live`."""

from tests.mutants.mutant import Mutant

HOOK = "tests/live/test_hook.py"

MUTANTS = [
    Mutant(
        "what somebody types while he stops an agent goes back with its turn",
        "live/event.py",
        "if self._payload.is_interrupted:",
        "if False:",
        ("tests/live/test_hook.py",),
    ),
    Mutant(
        "wherever an agent goes is scanned",
        "live/editedpath.py",
        "if main is not None and repository_place(main) == repository_place(top) and not",
        "if main is not None and not",
        ("tests/live/test_where.py",),
    ),
    Mutant(
        "the turn that begins is brought in before it begins",
        "live/earlier.py",
        "reading.steps = takewhile(is_before, reading.steps)",
        "takewhile(is_before, reading.steps)",
        ("tests/live/test_earlier.py",),
    ),
    Mutant(
        "an edit that failed is declared",
        "live/payload.py",
        "if self._failed or self._tool.lower()",
        "if self._tool.lower()",
        ("tests/live/test_hook.py",),
    ),
    Mutant(
        "hooks: a turn that was interrupted goes on",
        "live/event.py",
        "return was_interrupted(self._agent, turn, path) and relay.abort(turn)",
        "return False",
        (HOOK,),
    ),
    Mutant(
        "hooks: an id may be a path",
        "live/payload.py",
        '    return value if isinstance(value, str) and _ID.fullmatch(value) is not None else ""',
        '    return value if isinstance(value, str) else ""',
        (HOOK,),
    ),
    Mutant(
        "hooks: what goes on in the background holds what the agent left open",
        "live/hook.py",
        "    os.closerange(write + 1, highest + 1)",
        "    os.closerange(write + 1, write + 1)",
        (HOOK,),
    ),
    Mutant(
        "live: the name of a file is a message",
        "live/notice.py",
        "names = sorted(_quoted(path.removeprefix(workspace)) for path in paths)",
        "names = sorted(path.removeprefix(workspace) for path in paths)",
        ("tests/live/test_notice.py",),
    ),
]
