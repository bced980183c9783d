"""`turnlog path`."""

from __future__ import annotations

import os
import sys

import click

from turnlog.cli.option import print_json, session_argument, session_id, shared, this_home
from turnlog.cli.place import log_path


@click.command()
@session_argument
@shared
def command(session: str | None, as_json: bool) -> None:
    """Print the path of a session's log file: for tail -f, grep, cp."""
    with this_home() as home:
        found = session_id(home, session)
        path = log_path(home, found)
    if as_json:
        print_json({"session": found, "path": path})
        return
    sys.stdout.flush()
    output = getattr(sys.stdout, "buffer", None)
    if output is None:
        print(path)
    else:
        output.write(os.fsencode(path) + b"\n")
