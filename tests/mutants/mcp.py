"""Faults in `mcp`."""

from tests.mutants.mutant import Mutant

SERVED = "tests/mcp/test_tools.py"
SERVED_REWIND = "tests/mcp/test_rewind.py"
SERVER = "tests/mcp/test_server.py"

MUTANTS = [
    Mutant(
        "mcp: the scope is not looked at once more",
        "mcp/scope.py",
        "if card is None or not self.covers(card.workspace):",
        "if card is None:",
        (SERVED,),
    ),
    Mutant(
        "mcp: what a query says is not narrowed",
        "mcp/scope.py",
        "return asked.within(*own, *more)",
        "return asked.within(*more)",
        (SERVED,),
    ),
    Mutant(
        "mcp: the session that asks takes the place of another",
        "mcp/caller.py",
        'return [Filter("session", self.sessions, negated=True)] if self.sessions else []',
        "return []",
        (SERVED,),
    ),
    Mutant(
        "mcp: any token will do",
        "mcp/tools/rewind.py",
        "if confirmed != proposed.stamp:",
        "if len(confirmed) != len(proposed.stamp):",
        (SERVED_REWIND,),
    ),
    Mutant(
        "mcp: what is cancelled is answered",
        "mcp/protocol.py",
        "if self._now is not None and self._now in self._cancelled:",
        "if False:",
        (SERVER,),
    ),
    Mutant(
        "mcp: an agent may rewind unasked",
        "mcp/server.py",
        '        names = [tool["name"] for tool in offered(allow_rewind=self._settings.allow_rewind)]',
        '        names = [tool["name"] for tool in offered(allow_rewind=True)]',
        ("tests/mcp/test_server.py", "tests/mcp/test_tools.py", "tests/mcp/test_rewind.py"),
    ),
    Mutant(
        "mcp: what a tool prints is an answer",
        "mcp/server.py",
        "    os.dup2(2, 1)  # whatever else is printed must not get between the answers\n",
        "",
        ("tests/mcp/test_server.py",),
    ),
    Mutant(
        "mcp: below the home folder is everything",
        "mcp/scope.py",
        "(not self._is_alone and any(",
        "(any(",
        ("tests/mcp/test_tools.py", "tests/mcp/test_server.py"),
    ),
    Mutant(
        "mcp: the label of a checkpoint as it is",
        "mcp/tools/rewind.py",
        'words, note = line(proposed.words), line(plan.note or "")',
        'words, note = proposed.words, line(plan.note or "")',
        (SERVED_REWIND,),
    ),
    Mutant(
        "mcp: changes of one turn under the number of another",
        "mcp/tools/list_changes.py",
        "number = turns_of(session).covered if turn is None else turn",
        "number = len(turns_of(session).numbers) if turn is None else turn",
        (SERVED_REWIND,),
    ),
    Mutant(
        "mcp: half a surrogate pair is let in",
        "mcp/offer.py",
        "problem = _wrong_value(properties[key], value) or _wrong_text(value)",
        "problem = _wrong_value(properties[key], value)",
        (SERVER,),
    ),
]
