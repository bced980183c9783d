"""The command that an agent runs: it guards itself, so that nothing that happens to us is ever the agent's problem."""

from __future__ import annotations

import re
import shlex

_CLEAN = "PYTHONPATH= PYTHONHOME= PYTHONSAFEPATH=1"
"""What another program set for its own Python, and what lies in the folder, is none of ours."""


def call(program: str, agent: str, event: str) -> str:
    """For `sh -c`, and other shells that know as much: silent, and always with the exit code 0."""
    quoted = shlex.quote(program)
    return f"test -x {quoted} && {_CLEAN} {quoted} hook {agent} {event} 2>/dev/null || :"


def program_in(command: object, agent: str) -> str | None:
    """The program that such a command calls, whichever version of ours wrote it; None if it is somebody else's."""
    if not isinstance(command, str):
        return None
    found = re.fullmatch(rf"test -x (.+?) && .*? hook {re.escape(agent)} \w+ 2>/dev/null \|\| :", command, re.DOTALL)
    try:
        words = shlex.split(found[1]) if found is not None else []
    except ValueError:
        return None
    return words[0] if len(words) == 1 else None
