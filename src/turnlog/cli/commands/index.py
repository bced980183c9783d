"""`turnlog index`."""

from __future__ import annotations

import os

from turnlog.catalog import Catalog
from turnlog.catalog.background import lock_of
from turnlog.cli.frame.command import Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.home import home_location
from turnlog.cli.frame.progress import progress_line, show_share
from turnlog.machine.folder import workspace_path
from turnlog.view.number import count

GROUP = "Care", 17
CHANGES = shape.NOTHING
FIELDS = {"sessions": shape.number("how many are indexed"), "path": shape.text("the file of the index")}


@declare(Option("--background", "", hidden=True))
def command(*, background: bool, as_json: bool) -> None:
    """Index everything that is new, and wait until it is done.

    The first command on a machine answers at once and leaves indexing to a background process; later commands start it
    again if it was stopped. This command is optional: it is for scripts, and to be sure that a search or a sum covers
    everything. With TURNLOG_BACKGROUND=off in the environment, every command reads everything first, without a
    background process.

    \b
    turnlog index && turnlog usage month
    """
    home = home_location()
    if background:
        _make(home)
        return
    with Catalog(home, agents=True, progress=show_share) as catalog, progress_line():
        catalog.complete()
        sessions, path = catalog.standing().sessions, catalog.path
    if as_json:
        print_json({"sessions": sessions, "path": path})
    else:
        print(f"{count(sessions, 'session')} {'is' if sessions == 1 else 'are'} indexed")


def _make(home: str | None) -> None:
    """Make the index in the background. The process leaves this folder, so that it can be unmounted or removed."""
    from turnlog.catalog.watch.limits import limits
    from turnlog.machine.detached import alone

    workspace = workspace_path(".")
    os.chdir("/")
    with Catalog(home, agents=True) as catalog, alone(lock_of(catalog.path)) as is_alone:
        if is_alone:
            limits()  # asks the agents for them once, and stores the answer for later commands
            catalog._make(workspace)  # pyright: ignore[reportPrivateUsage]
