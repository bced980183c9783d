"""The agents on this machine, for people: what `doctor` says of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from turnlog.cli.draw.keeping import deletes
from turnlog.cli.draw.notice import losses
from turnlog.cli.draw.table import table
from turnlog.cli.draw.text import count, one_line, size
from turnlog.reader.folder import tilde

if TYPE_CHECKING:
    from turnlog.reader.presence import AgentPresence

_SHOWN = 10


def presence_lines(agents: list[AgentPresence], home: str | None) -> Iterator[str]:
    """A table, and below it what needs a look."""
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
    for loss in losses(home, {one.agent: one.going for one in agents if one.going}):
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
    more = len(one.unreadable) + len(one.damaged) - 2 * _SHOWN
    if more > 0:
        yield f"{one.agent}: {count(more, 'more file')} of that kind; --json has them all"
    if one.gone:
        yield f"{one.agent}: {count(one.gone, 'session')} gone, and counted in `turnlog usage`"
    if one.unknown:
        kinds = ", ".join(f"{kind} ({number:,})" for kind, number in list(one.unknown.items())[:_SHOWN])
        yield f"{one.agent}: records of unknown types in its newest sessions: {kinds}"
