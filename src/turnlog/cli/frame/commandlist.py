"""Which commands there are, and the one that is meant. Imports nothing heavy."""

from __future__ import annotations

import os
from importlib import import_module

from turnlog.cli import commands
from turnlog.cli.frame.command import Command
from turnlog.cli.frame.exitcode import Misused
from turnlog.machine.modules import without_old

_MEANT = {
    "annotate": "blame", "browse": "tui", "choose": "pick", "select": "pick",
    "cost": "usage", "costs": "usage", "spend": "usage", "stats": "usage", "money": "usage", "find": "search",
    "grep": "search", "list": "ls", "sessions": "ls", "status": "ls", "continue": "resume", "open": "resume",
    "view": "show", "cat": "show", "read": "show", "back": "rewind", "revert": "rewind", "rollback": "rewind",
    "unarchive": "archive --remove", "unhide": "archive --remove", "unstar": "star --remove", "untag": "tag --remove",
    "share": "export --to html", "publish": "export --to html", "uninstall": "setup --undo",
    "delete": "rm", "remove": "rm", "agents": "formats", "check": "doctor", "help": "--help", "version": "--version",
}  # fmt: skip
"""Words of other programs, and our command for each: the error suggests it."""
_SAME = {"hide": "archive", "rename": "title"}
"""Other names of commands, accepted as they are."""


def command_names() -> list[str]:
    """Every command: the files in `commands/`, of which none is imported."""
    files = os.listdir(commands.__path__[0])  # noqa: PTH208 - pathlib takes longer to load than a command to answer
    return sorted(file[:-3] for file in files if file.endswith(".py") and not file.startswith("_"))


def get_command(name: str) -> Command:
    """One command, by its name or another word for it. Raises `Misused` if there is none."""
    name = _SAME.get(name, name)
    if name not in command_names():
        raise _no_command(name)
    with without_old():
        return import_module(f"{commands.__name__}.{name}").command


def _no_command(name: str) -> Misused:
    from difflib import get_close_matches

    near = [_MEANT[name]] if name in _MEANT else get_close_matches(name, command_names(), n=1)
    hint = "see `turnlog --help`"
    if near:
        more = "" if near[0].startswith("-") else " `turnlog --help` lists all"
        hint = f"did you mean `turnlog {near[0]}`?{more}"
    return Misused(f"no such command {name!r:.80}", hint=hint, candidates=near)
