"""The agents on this machine, for people: what `doctor` says of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from turnlog.cli.draw.keeping import deletes
from turnlog.cli.draw.table import table
from turnlog.reader.naming.here import tilde
from turnlog.view.number import count, size
from turnlog.view.visible import one_line

if TYPE_CHECKING:
    from turnlog.reader.agents.presence import AgentPresence

_SHOWN = 10


def presence_lines(agents: list[AgentPresence], losses: list[str]) -> Iterator[str]:
    """Yield a table, and below it what needs a look; `losses` are sessions that are deleted soon."""
    head = ("AGENT", "SESSIONS", "SIZE", "DELETES", "WHERE")
    cells = [
        (
            one.agent,
            f"{one.sessions:,}",
            size(one.bytes),
            deletes(one.days),
            ", ".join(tilde(home) for home in one.homes),
        )
        for one in agents
    ]
    yield from table(head, cells, right=(1, 2), paths=4)
    for loss in losses:
        yield f"{loss}: `turnlog keep` keeps them"
    for one in agents:
        yield from map(one_line, _about(one))


def _about(one: AgentPresence) -> Iterator[str]:
    if one.settings_problem:
        yield f"its settings cannot be read, and so {one.agent} may not either: {one.settings_problem}"
    for path, why in list(one.unreadable.items())[:_SHOWN]:
        yield f"{tilde(path)}: {why}"
    for path, number in list(one.damaged.items())[:_SHOWN]:
        yield f"{tilde(path)}: {count(number, 'place')} cannot be read"
    more = sum(max(0, len(files) - _SHOWN) for files in (one.unreadable, one.damaged))
    if more:
        yield f"{one.agent}: {count(more, 'more file')} of that kind; --json has them all"
    if one.gone:
        yield f"{one.agent}: {count(one.gone, 'session')} gone, and counted in `turnlog usage`"
    if one.unknown:
        kinds = ", ".join(f"{kind} ({number:,})" for kind, number in list(one.unknown.items())[:_SHOWN])
        yield f"{one.agent}: records of unknown types in its newest sessions: {kinds}"
