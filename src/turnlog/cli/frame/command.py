"""What the file of a command is made of: its options, the home, JSON. Which session is meant: see `pick/session`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click
from msgspec.structs import replace

from turnlog.cli.draw.text import one_line
from turnlog.cli.frame.output import COUNTS, DRY_RUN, REPORT, SESSION, VERSION, print_json, to_json, write_json
from turnlog.cli.frame.progress import patience, tell
from turnlog.errors import Conflict
from turnlog.machine.environment import default_home
from turnlog.machine.location import folder_of
from turnlog.machine.retention import trash_for
from turnlog.session import Home, Session, open_home
from turnlog.session.readonly import ReadOnlySession

__all__ = [
    "COUNTS", "DRY_RUN", "REPORT", "SESSION", "VERSION", "here_option", "home_location", "patience", "print_json",
    "refuse_interrupted", "session_argument", "session_option", "shared", "this_home", "to_json",
    "warn_of_interruption", "write_json",
]  # fmt: skip
_F = TypeVar("_F", bound=Callable[..., Any])


def _to_root(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """`turnlog ls --home P` means `turnlog --home P ls`."""
    if value:
        context.find_root().params[str(parameter.name)] = value


def shared(function: _F) -> _F:
    """The options that every command has."""
    for option in (
        click.option("--debug", is_flag=True, hidden=True, expose_value=False, callback=_to_root),
        click.option("--home", metavar="PATH", hidden=True, expose_value=False, callback=_to_root),
        click.option("--json", "as_json", is_flag=True, help="Print JSON for programs."),
    ):
        function = option(function)
    return function


here_option = click.option("--here", is_flag=True, help="Only this folder, not the whole repository it is in.")
session_argument = click.argument("session", required=False)
session_option = click.option(
    "--session", "-s", metavar="SESSION", help="Which session. [default: this folder's newest]"
)


def home_location() -> str | None:
    """What the options say where the home is."""
    return click.get_current_context().find_root().params.get("home")


def this_home() -> Home:
    """The home that the options say, or the default one. What takes long in it tells `progress`."""
    home = open_home(home_location())
    folder = folder_of(home_location() or default_home())
    stays = trash_for(folder) if folder is not None else None
    home.settings = replace(home.settings, progress=tell, trash_for=stays)
    return home


def refuse_interrupted(session: Session) -> None:
    """Raise `Conflict` if an earlier rewind has to be finished first."""
    if session.interrupted():
        name = one_line(session.handle)
        raise Conflict(
            f"a rewind of session {name} was begun and not finished",
            hint=f"`turnlog rewind --continue -s {name}` finishes it, `--abort` takes it back",
        )


def warn_of_interruption(found: ReadOnlySession) -> None:
    """Say it where a person sees it, if a rewind was begun and not finished."""
    if found.interrupted():
        name = one_line(found.handle)
        print(
            f"warning: a rewind was begun and not finished; `turnlog rewind --continue -s {name}` finishes it, "
            f"`turnlog rewind --abort -s {name}` takes it back",
            file=sys.stderr,
        )
