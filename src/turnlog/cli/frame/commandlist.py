"""Which commands there are, and the one that is meant. Imports nothing heavy."""

from __future__ import annotations

import os
from importlib import import_module

from turnlog.cli import commands
from turnlog.cli.frame.command import Command
from turnlog.cli.frame.exitcode import UsageError
from turnlog.machine.modules import quick_imports

_SUGGESTIONS = {
    "annotate": "blame", "browse": "tui", "choose": "pick", "select": "pick",
    "cost": "usage", "costs": "usage", "spend": "usage", "stats": "usage", "money": "usage", "find": "search",
    "grep": "search", "list": "ls", "sessions": "ls", "status": "ls", "continue": "resume", "open": "resume",
    "view": "show", "cat": "show", "read": "show", "back": "rewind", "revert": "rewind", "rollback": "rewind",
    "unarchive": "archive --remove", "unhide": "archive --remove", "unstar": "star --remove", "untag": "tag --remove",
    "share": "export --to html", "publish": "export --to html", "uninstall": "setup --undo",
    "delete": "rm", "remove": "rm", "agents": "formats", "check": "doctor", "help": "--help", "version": "--version",
}  # fmt: skip
"""Words of other programs, and our command for each: the error suggests it."""
_ALIASES = {"hide": "archive", "rename": "title"}
"""Other names of commands, accepted as they are."""


def command_names() -> list[str]:
    """Every command: the files in `commands/`, of which none is imported."""
    files = os.listdir(commands.__path__[0])  # noqa: PTH208 - pathlib takes longer to load than a command to answer
    return sorted(file[:-3] for file in files if file.endswith(".py") and not file.startswith("_"))


def source_of(name: str) -> str:
    """The source of a command, for what is declared there: to import every command takes too long."""
    with open(f"{commands.__path__[0]}/{name}.py", encoding="utf-8") as file:  # noqa: PTH123 - as above
        return file.read()


def takes_session(name: str) -> bool:
    """Whether the first word of a command is a session: if it declares one of the arguments for that first."""
    name = _ALIASES.get(name, name)
    if name not in command_names():
        return False
    first = "".join(source_of(name).split()).partition("@declare(")[2].partition(")")[0]
    return first.startswith("SESSION") or 'kind="session"' in first


def get_command(name: str) -> Command:
    """One command, by its name or another word for it. Raises `UsageError` if there is none."""
    name = _ALIASES.get(name, name)
    if name not in command_names():
        raise _no_command(name)
    with quick_imports():
        return import_module(f"{commands.__name__}.{name}").command


def _no_command(name: str) -> UsageError:
    from difflib import get_close_matches

    near = [_SUGGESTIONS[name]] if name in _SUGGESTIONS else get_close_matches(name, command_names(), n=1)
    hint = "see `turnlog --help`"
    if near:
        more = "" if near[0].startswith("-") else " `turnlog --help` lists all"
        hint = f"did you mean `turnlog {near[0]}`?{more}"
    return UsageError(f"no such command {name!r:.80}", hint=hint, candidates=near)
