"""The command that an agent runs: it guards itself, so that nothing that happens to us is ever the agent's problem."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

_CLEAN = "PYTHONPATH= PYTHONHOME= PYTHONSAFEPATH=1"
"""Settings that another program made for its own Python, and modules in the current folder, must not reach ours."""
_HOME = "TURNLOG_HOME="


def hook_command(program: str, agent: str, event: str, home: str = "") -> str:
    """The command that reports an event, for `sh -c` or a similar shell: silent, and always with the exit code 0.

    `home` is the one that the hook writes to; empty for the default one.
    """
    quoted = shlex.quote(program)
    where = f" {_HOME}{shlex.quote(home)}" if home else ""
    return f"test -x {quoted} && {_CLEAN}{where} {quoted} hook {agent} {event} 2>/dev/null || :"


class HookCall(NamedTuple):
    """The program that a hook calls, and the home that it writes to; empty for the default one."""

    program: str
    home: str


def parse_hook_command(command: object, agent: str) -> HookCall | None:
    """The call in a command that any version of ours wrote; None for any other command."""
    if not isinstance(command, str):
        return None
    match = re.fullmatch(rf"test -x (.+?) && (.*? )hook {re.escape(agent)} \w+ 2>/dev/null \|\| :", command, re.DOTALL)
    try:
        tested, called = (shlex.split(part) for part in match.groups()) if match is not None else ([], [])
    except ValueError:
        return None
    if len(tested) != 1:
        return None
    home = next((word.removeprefix(_HOME) for word in called if word.startswith(_HOME)), "")
    return HookCall(tested[0], home)
