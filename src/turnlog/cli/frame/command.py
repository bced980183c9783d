"""What the file of a command is made of: its options, the home, JSON. Which session is meant: see `pick/session`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from turnlog.cli.draw.text import one_line
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.home import choose_home, home_location, this_home
from turnlog.cli.frame.output import to_json, want, write_json
from turnlog.cli.frame.progress import patience
from turnlog.cli.frame.quick import LISTED, SHARED, click_option
from turnlog.cli.frame.shape import items_of
from turnlog.errors import Conflict

if TYPE_CHECKING:
    from turnlog.session import Session

__all__ = [
    "here_option", "home_location", "patience", "print_json", "refuse_interrupted", "session_argument",
    "session_option", "shared", "this_home", "to_json", "write_json",
]  # fmt: skip
_F = TypeVar("_F", bound=Callable[..., Any])


def _choose(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """`turnlog ls --home P` means `turnlog --home P ls`."""
    if value:
        choose_home(value)


def shared(function: _F) -> _F:
    """The options that every command has; with a list in its `FIELDS`, those that every list has."""
    module = sys.modules[function.__module__]

    @wraps(function)
    def framed(*arguments: Any, **options: Any) -> Any:
        want(module.__name__, options)
        return function(*arguments, **options)

    known = [option for option in SHARED if not option.hidden]
    known += LISTED if items_of(module.FIELDS) else ()
    for option in reversed(known):
        framed = click_option(option)(framed)
    framed = click.option("--home", metavar="PATH", hidden=True, expose_value=False, callback=_choose)(framed)
    framed = click.option("--debug", is_flag=True, hidden=True, expose_value=False)(framed)
    return cast("_F", framed)


here_option = click.option("--here", is_flag=True, help="Only this folder, not the whole repository it is in.")
session_argument = click.argument("session", required=False)
session_option = click.option(
    "--session", "-s", metavar="SESSION", help="Which session. [default: this folder's newest]"
)


def refuse_interrupted(session: Session) -> None:
    """Raise `Conflict` if an earlier rewind has to be finished first."""
    if session.interrupted():
        name = one_line(session.handle)
        raise Conflict(
            f"a rewind of session {name} was begun and not finished",
            hint=f"`turnlog rewind --continue -s {name}` finishes it, `--abort` takes it back",
        )
