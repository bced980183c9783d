"""The program: how the command that is meant is run. Imports nothing heavy."""

from __future__ import annotations

import sys

from turnlog.cli.frame.arguments import parsed
from turnlog.cli.frame.command import HELP, Argument, Command, Option
from turnlog.cli.frame.commandlist import get_command
from turnlog.cli.frame.exitcode import Misused, ended
from turnlog.cli.frame.home import choose_home, home_location
from turnlog.cli.frame.output import want
from turnlog.machine.modules import without_old
from turnlog.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. Raises nothing."""
    return ended(arguments, lambda: _start(PROGRAM, arguments))


def _start(command: Command, words: Sequence[str]) -> None:
    """Do what the words say, or print the help."""
    try:
        values = _values(command, words)
        if values is None:
            from turnlog.cli.frame.help import help_of

            print(help_of(command))
            return
        choose_home(values.pop("home") or (None if command.is_program else home_location()))
        values.pop("debug")  # looked up where it is needed: see `exitcode`
        if not command.is_program:
            want(command.module.__name__, values)
        command.run(**values)
    except Misused as error:
        error.hint = error.hint or f"see `{command.path} --help`"
        raise


def _values(command: Command, words: Sequence[str]) -> dict[str, Any] | None:
    """What the words mean; None if they ask for the help, also where others of them are wrong."""
    try:
        values = parsed(command, words)
    except Misused:
        if set(HELP.flags) & set(words[: words.index("--")] if "--" in words else words):
            return None
        raise
    return None if values.pop("help") else values


def _program(words: tuple[str, ...], version: bool) -> None:
    """Find, read and manage the sessions of AI coding agents, and take back what they did to files.

    `turnlog` alone gives an overview of this machine and this folder.

    A SESSION is an id or handle, or any unique beginning of one; agent:id for another agent's; "@" for the newest of
    this folder, "@-" for the one before, "latest" for the newest of all; or a file. The default is "@", otherwise
    "latest".
    """
    if version:
        print(f"turnlog {__version__}")
    elif words:
        _start(get_command(words[0]), words[1:])
    else:
        with without_old():
            from turnlog.cli.draw.dashboard import print_dashboard
        print_dashboard()


PROGRAM = Command(
    sys.modules[__name__],
    _program,
    (
        Argument("words", "[COMMAND] [ARGS]...", rest=True),
        Option("--version", "Show the version and exit."),
        Option("--home PATH", "Where the sessions are. [default: $TURNLOG_HOME or ~/.turnlog]"),
        Option("--debug", "Show a traceback when something goes wrong."),
        HELP,
    ),
    "turnlog",
)
