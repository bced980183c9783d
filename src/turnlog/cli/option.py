"""What commands have in common: --json, --home, and which session is meant."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
import msgspec
from msgspec.structs import replace

from turnlog.cli.look import Look
from turnlog.cli.progress import tell
from turnlog.cli.text import one_line
from turnlog.errors import Ambiguous, Conflict, NotFound
from turnlog.session import Home, Session, open_home
from turnlog.session.history import History
from turnlog.session.places import workspace_path
from turnlog.session.readable import Readable

VERSION = 1
"""Of everything that `--json` prints. It grows when a field changes its meaning or goes away."""

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


session_argument = click.argument("session", required=False)
session_option = click.option(
    "--session", "-s", metavar="SESSION", help="Which session. [default: this folder's newest]"
)


def this_home() -> Home:
    """The home that the options say, or the default one. What takes long in it tells `progress`."""
    home = open_home(click.get_current_context().find_root().params.get("home"))
    home.settings = replace(home.settings, progress=tell)
    return home


def session_id(home: Home, name: str | None) -> str:
    """The session that is meant: the one of that name, deleted or not; without one, the nearest and newest."""
    if name is None:
        return session_here(home, anywhere=True) or home.id_of("latest")
    try:
        return home.id_of(name)
    except Ambiguous:
        raise
    except NotFound as error:
        try:
            return home.id_of(name, deleted=True)
        except Ambiguous:
            raise
        except NotFound:
            raise error from None


def look_at(home: Home, name: str | None) -> Look:
    """A session to read from. Nothing is locked and nothing is written, and a deleted one can be read as well."""
    history = History(home.store, home.store.base(session_id(home, name)))
    history.load()
    return Look(home, history)


def session_here(home: Home, *, agent: str | None = None, anywhere: bool = False) -> str | None:
    """The newest session of this folder, or of the nearest one above it that has any; of that agent only, if told.

    Not beyond the repository that this folder is in, unless `anywhere`.
    """
    from pathlib import Path

    newest: dict[str, str] = {}
    for row in home.sessions():
        if row.workspace and not row.hidden and row.parent is None and agent in (None, row.agent):
            newest.setdefault(row.workspace, row.id)
    here = Path(workspace_path("."))
    for folder in (here, *here.parents):
        if str(folder) in newest:
            return newest[str(folder)]
        if not anywhere and (folder / ".git").exists():
            break
    return None


def session_to_change(home: Home, name: str | None) -> Session:
    """A session to write to. One of another folder has to be named: nothing is changed by mistake."""
    if name is not None:
        return home.resume(home.id_of(name))
    found = session_here(home)
    if found is None:
        raise NotFound(
            f"no session for {workspace_path('.')}", hint="`turnlog checkpoint` begins one; --session names another"
        )
    return home.resume(found)


def refuse_interrupted(session: Session) -> None:
    """Raise `Conflict` if an earlier rewind has to be finished first."""
    if session.interrupted():
        name = one_line(session.handle)
        raise Conflict(
            f"a rewind of session {name} was begun and not finished",
            hint=f"`turnlog rewind --continue -s {name}` finishes it, `--abort` takes it back",
        )


def warn_of_interruption(found: Readable) -> None:
    """Say it where a person sees it, if a rewind was begun and not finished."""
    if found.interrupted():
        name = one_line(found.handle)
        print(
            f"warning: a rewind was begun and not finished; `turnlog rewind --continue -s {name}` finishes it, "
            f"`turnlog rewind --abort -s {name}` takes it back",
            file=sys.stderr,
        )


def print_json(data: Mapping[str, Any]) -> None:
    """Data for programs: exact, nothing escaped but what JSON escapes."""
    write_json(msgspec.json.format(to_json({"version": VERSION, **data}), indent=2))


def to_json(data: Any) -> bytes:
    """JSON, on one line."""
    try:
        return msgspec.json.encode(data)
    except UnicodeEncodeError:
        import json

        return json.dumps(msgspec.to_builtins(data), ensure_ascii=True).encode()


def write_json(line: bytes) -> None:
    """A line of JSON to stdout, in UTF-8 whatever the terminal speaks."""
    sys.stdout.flush()
    output = getattr(sys.stdout, "buffer", None)
    if output is None:
        sys.stdout.write(line.decode() + "\n")
    else:
        output.write(line + b"\n")
