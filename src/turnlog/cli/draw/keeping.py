"""What is kept of other agents' sessions, for people."""

from __future__ import annotations

from typing import Any

from turnlog.cli.draw.table import table
from turnlog.cli.draw.text import moment, one_line
from turnlog.reader.folder import tilde
from turnlog.view.number import count, size

_SHOWN = 10
LONG_DAYS = 3650
"""A retention of this many days or more is treated as "never"."""


def print_status(status: dict[str, Any], *, is_stopped: bool) -> None:
    """How it stands, and what to type next."""
    rows = status["agents"]
    if not rows:
        print("nothing is kept; `turnlog keep` keeps what agents would delete")
        return
    head = ("AGENT", "KEPT", "FILES", "SIZE", "DELETES")
    cells = [
        (row["agent"], "yes" if row["is_kept"] else "no more", f"{row['files']:,}", size(row["bytes"]), _limit(row))
        for row in rows
    ]
    for line in table(head, cells, right=(2, 3)):
        print(line)
    print()
    goes_on = any(row["is_kept"] for row in rows)
    if status["running"]:
        print("more is being kept right now, in the background")
    elif (last := status["last"]) is not None:
        print(f"last run {moment(last.at)}{'; the next turnlog command runs it again' * goes_on}")
        for path, why in list(last.problems.items())[:_SHOWN]:
            print(one_line(f"not kept: {tilde(path)}: {why}"))
        if len(last.problems) > _SHOWN:
            print(f"not kept: {count(len(last.problems) - _SHOWN, 'more file')}; --json has them all")
    print(one_line(f"they are in {tilde(status['folder'])}"))
    if is_stopped:
        of = f" of {', '.join(row['agent'] for row in rows if not row['is_kept'])}" if goes_on else ""
        print(f"nothing more{of} is kept; what is kept stays until you remove that folder")
        for row in rows:
            if not row["is_kept"] and row["settings"] is not None and deletes(row["days"]) == "nothing":
                print(one_line(f"{row['agent']} still deletes nothing: {tilde(row['settings'])} is not changed"))


def _limit(row: dict[str, Any]) -> str:
    if row["settings"] is None:
        return "nothing by itself"
    return deletes(row["days"])


def deletes(days: float | None) -> str:
    """When an agent deletes sessions."""
    return "nothing" if days is None or days >= LONG_DAYS else f"after {days:,g} days"
