"""`turnlog resume`."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from turnlog.cli import child
from turnlog.cli.name import look_at, named, opened, session_brought
from turnlog.cli.option import print_json, session_argument, shared, this_home
from turnlog.cli.problem import tell_report
from turnlog.cli.text import safe
from turnlog.errors import NotFound

if TYPE_CHECKING:
    from turnlog.session.readable import Readable


@click.command()
@session_argument
@click.option("--in", "agent", metavar="AGENT", help="In which agent. [default: the one it came from]")
@click.option("--workspace", "-w", metavar="PATH", help="In that folder. [default: the session's]")
@click.option("--exec", "is_run", is_flag=True, help="Run the command at once, in the session's folder.")
@shared
def command(session: str | None, agent: str | None, workspace: str | None, is_run: bool, as_json: bool) -> None:
    """Go on with a session, in the agent it came from or in another one.

    Puts the session where that agent looks for it and prints the command that goes on with it there; with --exec, runs
    it. Nothing of the agent's is written over: where it has the session already, that is used, and where it has gone on
    with it, a note says so. The report on stderr says what was carried, changed and lost.

    A session of another agent goes on in that agent, where it lies; for --in it is imported first.

    A session of your own agent is resumed with the command given to home.create(resume=[…]).

    \b
    turnlog resume                           this folder's newest session
    turnlog resume k3f9 --in codex           what another agent began, in Codex
    turnlog resume codex:0199 --in claude-code --exec
    """
    from turnlog.session.handover import hand_over

    with this_home() as home, ExitStack() as stack:
        chosen = named(home, session)
        found: Readable
        if chosen.source is None:
            found = stack.enter_context(look_at(home, chosen.id))
        elif agent in (None, chosen.source.agent):
            found = stack.enter_context(opened(chosen)).look
        else:  # from now on it is in two places: ours knows that both are one
            found = stack.enter_context(session_brought(home, chosen.name, chosen))
        done = hand_over(found, agent, workspace=workspace)
    if as_json:
        print_json({
            "agent": done.agent, "id": done.id, "path": done.path, "cwd": done.cwd, "command": done.command,
            "report": done.report,
        })  # fmt: skip
    else:
        tell_report(done.report)
        if not is_run:
            is_script = done.command[:2] == ["sh", "-c"]
            words = done.command[2] if is_script else shlex.join(done.command)
            print(safe(f"cd {shlex.quote(done.cwd)} && {words}"))
    if is_run:
        _run(done.command, done.cwd)


def _run(words: list[str], cwd: str) -> None:
    """Become that program; only what prevents it returns."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.chdir(cwd)
    except OSError as error:
        raise NotFound(f"the folder {cwd}: {error.strerror}", hint="-w names another one") from None
    try:
        os.execvp(words[0], words)
    except FileNotFoundError:
        raise child.NoCommand(f"no command {words[0]!r}", hint="install it, and run this again") from None
    except OSError as error:
        raise child.NotRunnable(f"{words[0]}: {error.strerror}") from None
