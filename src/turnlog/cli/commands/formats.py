"""`turnlog formats`."""

from __future__ import annotations

from typing import Any

from turnlog.cli.draw.table import Column, grid
from turnlog.cli.draw.text import screen_width
from turnlog.cli.frame import shape
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import declare

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


@declare()
def command(as_json: bool) -> None:
    """List the agents whose sessions can be read, what else is possible, and where their sessions are.

    `turnlog import` and `turnlog show` read all of them; `turnlog export` writes, and `turnlog resume` continues
    sessions where the table shows it. The table lists one folder of each agent, (+2) for two more, and the known
    versions if there is room; --json has everything.

    \b
    turnlog formats
    """
    from turnlog.formats import every
    from turnlog.machine.folder import places_of

    places = places_of(None)
    rows: list[dict[str, Any]] = []
    for name, form in every():
        can = {"read": True, "write": form.write is not None, "resume": form.resume is not None}
        rows.append({"name": name, "title": form.title, **can, "homes": form.homes(places)})
    if as_json:
        print_json({"formats": rows})
        return
    cans = [", ".join(word for word in ("read", "write", "resume") if row[word]) for row in rows]
    columns = [
        Column("AGENT", [row["name"] for row in rows]),
        Column("CAN", cans),
        Column("SESSIONS IN", [_places(row["homes"]) for row in rows], least=30, is_path=True),
        Column("WHICH", [row["title"] for row in rows], least=30, drop=1),
    ]
    print("\n".join(grid(columns)))


def _places(homes: list[str]) -> str:
    """All of them; on a screen the first, and how many more there are."""
    from turnlog.machine.folder import expand

    shown = homes if screen_width() is None else homes[:1]
    more = f" (+{len(homes) - len(shown)})" if len(shown) < len(homes) else ""
    return ", ".join(_short(path, expand("~")) for path in shown) + more


def _short(path: str, home: str) -> str:
    """A folder as people write it: from here, or from their home."""
    from turnlog.machine.folder import current_folder

    for base, mark in sorted([(current_folder(), "."), (home, "~")], key=lambda pair: -len(pair[0])):
        if base != "/" and (path + "/").startswith(base + "/"):
            return mark + path.removeprefix(base)
    return path
