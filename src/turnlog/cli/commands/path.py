"""`turnlog path`."""

from __future__ import annotations

import os
import sys

from turnlog.cli.draw.text import path_of
from turnlog.cli.frame.command import SESSION_ARGUMENT, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.jsonline import write_line
from turnlog.cli.frame.document.shape import SESSION
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.home import home_location, this_home
from turnlog.cli.logpath import log_path
from turnlog.cli.pick.session import names
from turnlog.exchange.keeping.keptfile import KeptFiles

GROUP = "Care", 10
CHANGES = shape.NOTHING
FIELDS = {"session": SESSION, "path": shape.text("its file")}


@declare(SESSION_ARGUMENT)
def command(session: str | None, as_json: bool) -> None:
    """Print the path of a session's file. It may be ours or another agent's: for tail -f, grep, cp.

    If an agent keeps all sessions in one database, or a session in a folder, it is the path of that. For a session that
    its agent deleted and `turnlog keep` has, it is the copy: read it with zstd -dc.

    \b
    turnlog path k3f9
    grep -c tool "$(turnlog path codex:0199)"
    """
    with this_home() as home:
        ref = names(home).find(session)
        path = log_path(home, ref.id) if ref.source is None else KeptFiles(home_location()).file_of(ref.source)
    if as_json:
        print_json({"session": ref.name, "path": path})
        return
    if sys.stdout.isatty():
        print(path_of(os.fsencode(path)))
    else:
        write_line(os.fsencode(path))
