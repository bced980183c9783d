"""`turnlog formats`."""

from __future__ import annotations

from typing import Any

import click

from turnlog.cli.draw.table import table
from turnlog.cli.frame import shape
from turnlog.cli.frame.command import print_json, shared

CHANGES = shape.NOTHING
FIELDS = {
    "formats": shape.items(
        "an agent each",
        {
            "name": shape.text(),
            "title": shape.text(),
            "read": shape.flag("what can be done"),
            "write": shape.flag(),
            "resume": shape.flag(),
            "homes": shape.texts(),
        },
    ),
}


@click.command()
@shared
def command(as_json: bool) -> None:
    """List the agents whose sessions are known, what can be done with them, and where they lie.

    `turnlog import` and `turnlog show` read them all, `turnlog export` writes, `turnlog resume` goes on there.

    \b
    turnlog formats
    """
    from turnlog.formats import every
    from turnlog.machine.folder import expand, places_of

    places = places_of(None)
    rows: list[dict[str, Any]] = []
    for name, form in every():
        can = {"read": True, "write": form.write is not None, "resume": form.resume is not None}
        rows.append({"name": name, "title": form.title, **can, "homes": form.homes(places)})
    if as_json:
        print_json({"formats": rows})
        return
    home = expand("~")
    cells: list[tuple[str, ...]] = []
    for row in rows:
        can = ", ".join(word for word in ("read", "write", "resume") if row[word])
        cells.append((row["name"], can, ", ".join(_short(path, home) for path in row["homes"]), row["title"]))
    for line in table(("AGENT", "CAN", "SESSIONS IN", "WHICH"), cells, paths=2):
        print(line)


def _short(path: str, home: str) -> str:
    """A folder as people write it: from here, or from their home."""
    from turnlog.machine.folder import current_folder

    for base, mark in sorted([(current_folder(), "."), (home, "~")], key=lambda pair: -len(pair[0])):
        if base != "/" and (path + "/").startswith(base + "/"):
            return mark + path.removeprefix(base)
    return path
