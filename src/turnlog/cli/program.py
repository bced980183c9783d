"""The program: how the command that is meant is run. Imports nothing heavy."""

from __future__ import annotations

import sys

from turnlog.cli.errorline import ErrorForm, run_to_exit_code
from turnlog.cli.frame.arguments import own_words, parsed
from turnlog.cli.frame.command import HELP, Argument, Command, Option
from turnlog.cli.frame.commandlist import get_command
from turnlog.cli.frame.document.request import note_request
from turnlog.cli.frame.exitcode import UsageError
from turnlog.cli.frame.home import choose_home, home_location
from turnlog.machine.modules import quick_imports
from turnlog.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. Raises nothing."""
    return run_to_exit_code(lambda: _start(PROGRAM, arguments))


def _start(command: Command, words: Sequence[str]) -> None:
    """Do what the words say, or print the help."""
    ErrorForm.choose(command, own_words(command, words), words)
    try:
        values = _values(command, words)
        if values is None:
            from turnlog.cli.frame.help import help_of

            print(help_of(command))
            return
        choose_home(values.pop("home") or (None if command.is_program else home_location()))
        values.pop("debug")  # see `ErrorForm`
        if not command.is_program:
            note_request(command, values)
        command.run(**values)
    except UsageError as error:
        error.hint = error.hint or f"see `{command.path} --help`"
        raise


def _values(command: Command, words: Sequence[str]) -> dict[str, Any] | None:
    """What the words mean; None if they ask for the help, also where others of them are wrong."""
    try:
        values = parsed(command, words)
    except UsageError:
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
        with quick_imports():
            from turnlog.cli.overview.dashboard import print_dashboard
        print_dashboard()


PROGRAM = Command(
    sys.modules[__name__],
    _program,
    (
        Argument("words", "[COMMAND] [ARGS]...", takes_rest=True, kind="command"),
        Option("--version", "Show the version and exit."),
        Option("--home PATH", "Where the sessions are. [default: $TURNLOG_HOME or ~/.turnlog]", kind="folder"),
        Option("--debug", "Show a traceback when something goes wrong."),
        HELP,
    ),
    "turnlog",
)
