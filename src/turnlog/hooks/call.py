"""The command that an agent runs: it guards itself, so that nothing that happens to us is ever the agent's problem."""

from __future__ import annotations

import re
import shlex

_CLEAN = "PYTHONPATH= PYTHONHOME= PYTHONSAFEPATH=1"
"""What another program set for its own Python, and what lies in the folder, is none of ours."""
_HOME = "TURNLOG_HOME="


def call(program: str, agent: str, event: str, home: str = "") -> str:
    """For `sh -c`, and other shells that know as much: silent, and always with the exit code 0.

    `home` is the one that is filled, where that is not the usual one.
    """
    quoted = shlex.quote(program)
    where = f" {_HOME}{shlex.quote(home)}" if home else ""
    return f"test -x {quoted} && {_CLEAN}{where} {quoted} hook {agent} {event} 2>/dev/null || :"


def home_in(command: str) -> str:
    """The home that such a command fills; empty for the usual one."""
    words = shlex.split(command)
    return next((word.removeprefix(_HOME) for word in words if word.startswith(_HOME)), "")


def program_in(command: object, agent: str) -> str | None:
    """The program that such a command calls, whichever version of ours wrote it; None if it is somebody else's."""
    if not isinstance(command, str):
        return None
    match = re.fullmatch(rf"test -x (.+?) && .*? hook {re.escape(agent)} \w+ 2>/dev/null \|\| :", command, re.DOTALL)
    try:
        words = shlex.split(match[1]) if match is not None else []
    except ValueError:
        return None
    return words[0] if len(words) == 1 else None
