"""`turnlog formats`."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import asdict

from turnlog.cli.draw.table import Column, grid
from turnlog.cli.frame.command import declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.terminal import screen_width

GROUP = "Share", 6
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
    """List the agents whose sessions can be read. It shows what else is possible, and where their sessions are.

    `turnlog import` and `turnlog show` read all of them; `turnlog export` writes, and `turnlog resume` continues
    sessions where the table shows it. The table lists one folder of each agent, (+2) for two more, and the known
    versions if there is room; --json has everything.

    \b
    turnlog formats
    """
    from turnlog.formats import every
    from turnlog.machine.formatplaces import places_of

    places = places_of(None)
    rows = [
        FormatRow(name, form.title, True, form.write is not None, form.resume is not None, form.homes(places))
        for name, form in every()
    ]
    if as_json:
        print_json({"formats": list(map(asdict, rows))})
        return
    columns = [
        Column("AGENT", [row.name for row in rows]),
        Column("CAN", [row.abilities for row in rows]),
        Column("SESSIONS IN", [_places(row.homes) for row in rows], least=30, is_path=True),
        Column("WHICH", [row.title for row in rows], least=30, drop=1),
    ]
    print("\n".join(grid(columns)))


class FormatRow(Struct):
    """An agent, and what can be done with its sessions."""

    name: str
    title: str
    read: bool
    write: bool
    resume: bool
    homes: list[str]

    @property
    def abilities(self) -> str:
        """What can be done, in words."""
        words = {"read": self.read, "write": self.write, "resume": self.resume}
        return ", ".join(word for word, is_so in words.items() if is_so)


def _places(homes: list[str]) -> str:
    """All of them; on a screen the first, and how many more there are."""
    from turnlog.machine.folder import expand

    printed = homes if screen_width() is None else homes[:1]
    more = f" (+{len(homes) - len(printed)})" if len(printed) < len(homes) else ""
    return ", ".join(_short(path, expand("~")) for path in printed) + more


def _short(path: str, home: str) -> str:
    """A folder as people write it: from here, or from their home."""
    from turnlog.machine.folder import current_folder

    for base, mark in sorted([(current_folder(), "."), (home, "~")], key=lambda pair: -len(pair[0])):
        if base != "/" and (path + "/").startswith(base + "/"):
            return mark + path.removeprefix(base)
    return path
