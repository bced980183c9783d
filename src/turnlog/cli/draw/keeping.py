"""What is kept of other agents' sessions, for people."""

from __future__ import annotations

from turnlog.cli.draw.table import table
from turnlog.cli.fields.keeping import KeepStatus, KeptAgent
from turnlog.exchange.keeping.retention import LONG_DAYS
from turnlog.reader.naming.here import tilde
from turnlog.view.number import count, size
from turnlog.view.time import local_second
from turnlog.view.visible import one_line

_SHOWN = 10


def print_status(status: KeepStatus, stopped: list[str]) -> None:
    """Print what is kept, the result of the last run, where the copies are, and which agents were stopped."""
    if not status.agents:
        print("nothing is kept; `turnlog keep` keeps what agents would delete")
        return
    head = ("AGENT", "KEPT", "FILES", "SIZE", "DELETES")
    cells = [
        (row.agent, "yes" if row.is_kept else "stopped", f"{row.files:,}", size(row.bytes), _limit(row))
        for row in status.agents
    ]
    for line in table(head, cells, right=(2, 3)):
        print(line)
    print()
    _print_run(status)
    print(one_line(f"they are in {tilde(status.folder)}"))
    if stopped:
        _print_stopped([row for row in status.agents if row.agent in stopped], status)


def _print_run(status: KeepStatus) -> None:
    last = status.last
    if status.running:
        print("more is being kept right now, in the background")
    elif last is not None:
        again = "; the next turnlog command runs it again" if status.is_on else ""
        print(f"last run {local_second(last.at)}{again}")
        for path, why in list(last.problems.items())[:_SHOWN]:
            print(one_line(f"not kept: {tilde(path)}: {why}"))
        if len(last.problems) > _SHOWN:
            print(f"not kept: {count(len(last.problems) - _SHOWN, 'more file')}; --json has them all")


def _print_stopped(stopped: list[KeptAgent], status: KeepStatus) -> None:
    of = f" of {', '.join(row.agent for row in stopped)}" if status.is_on else ""
    print(f"nothing more{of} is kept; what is kept stays until you remove that folder")
    for row in stopped:
        if row.settings is not None and deletes(row.days) == "nothing":
            print(one_line(f"{row.agent} still deletes nothing: {tilde(row.settings)} is not changed"))


def _limit(row: KeptAgent) -> str:
    return "nothing by itself" if row.settings is None else deletes(row.days)


def deletes(days: float | None) -> str:
    """Return when an agent deletes sessions."""
    return "nothing" if days is None or days >= LONG_DAYS else f"after {days:,g} days"
