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
            agent.agent,
            f"{agent.sessions:,}",
            size(agent.bytes),
            deletes(agent.days),
            ", ".join(tilde(home) for home in agent.homes),
        )
        for agent in agents
    ]
    yield from table(head, cells, right=(1, 2), paths=4)
    for loss in losses:
        yield f"{loss}: `turnlog keep` keeps them"
    for agent in agents:
        yield from map(one_line, _about(agent))


def _about(agent: AgentPresence) -> Iterator[str]:
    if agent.settings_problem:
        yield f"its settings cannot be read, and {agent.agent} may fail to read them, too: {agent.settings_problem}"
    for path, why in list(agent.unreadable.items())[:_SHOWN]:
        yield f"{tilde(path)}: {why}"
    for path, number in list(agent.damaged.items())[:_SHOWN]:
        yield f"{tilde(path)}: {count(number, 'place')} cannot be read"
    more = sum(max(0, len(files) - _SHOWN) for files in (agent.unreadable, agent.damaged))
    if more:
        yield f"{agent.agent}: {count(more, 'more file')} of that kind; --json has them all"
    if agent.gone:
        yield f"{agent.agent}: {count(agent.gone, 'session')} gone, and counted in `turnlog usage`"
    if agent.unknown:
        kinds = ", ".join(f"{kind} ({number:,})" for kind, number in list(agent.unknown.items())[:_SHOWN])
        yield f"{agent.agent}: records of unknown types in its newest sessions: {kinds}"
