"""`turnlog index`."""

from __future__ import annotations

import os

from turnlog.catalog import Catalog
from turnlog.catalog.making import lock_of
from turnlog.cli.frame import shape
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import Option, declare
from turnlog.cli.frame.home import home_location
from turnlog.cli.frame.progress import part, patience
from turnlog.machine.folder import workspace_path
from turnlog.view.number import count

CHANGES = shape.NOTHING
FIELDS = {"sessions": shape.number("how many are indexed"), "path": shape.text("the file that the index lies in")}


@declare(Option("--background", "", hidden=True))
def command(*, background: bool, as_json: bool) -> None:
    """Read everything that is new, and wait until it is done.

    The first command on a machine answers at once and leaves the reading to a process in the background, which every
    further command joins and starts again if it was stopped. Nobody has to run this: it is for scripts, and for who
    wants to be sure that a search or a sum is of everything. TURNLOG_BACKGROUND=off in the environment makes every
    command read everything first, without any other process.

    \b
    turnlog index && turnlog usage month
    """
    home = home_location()
    if background:
        _make(home)
        return
    with Catalog(home, agents=True, progress=part) as catalog, patience():
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
            limits()  # whoever asks next finds them remembered
            catalog._make(workspace)  # pyright: ignore[reportPrivateUsage]
