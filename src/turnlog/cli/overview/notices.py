"""Notices of the overview: a line each, with the command that deals with it.

A warning is shown as long as it is true. Installations are suggested one at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.cli.draw.text import plain
from turnlog.cli.overview.diskspace import use_line
from turnlog.log.startup import NamedTuple
from turnlog.machine.environment import default_home
from turnlog.machine.keepstate import KeepState
from turnlog.reader.agents.hookedhome import has_hooks, unseen_agents
from turnlog.view.number import count

if TYPE_CHECKING:
    from turnlog.catalog import Standing


class Notice(NamedTuple):
    """A line that a person should see, and the command that does something about it."""

    text: str
    command: str
    """The command, without `turnlog`."""
    is_offer: bool = False
    """Whether it suggests to install something."""


def notices(standing: Standing, home: str | None = None, going: dict[str, int] | None = None) -> list[Notice]:
    """Return the notices that are true of that home now; of those that suggest an installation, one."""
    candidates = [*_pending(standing), *_losses(home, going or {}), *_size(home), *_offers(home)]
    offers = [notice for notice in candidates if notice.is_offer]
    return [notice for notice in candidates if notice not in offers[1:]]


def _pending(standing: Standing) -> list[Notice]:
    if not standing.pending:
        return []
    text = f"{standing.indexed:,} of {count(standing.sessions, 'session')} are counted so far, the newest first"
    return [Notice(text, "index")]


def _losses(home: str | None, going: dict[str, int]) -> list[Notice]:
    """Sessions that their agent is about to delete, and nobody keeps."""
    return [Notice(text, "keep") for text in losses(home, going)]


def losses(home: str | None, going: dict[str, int]) -> list[str]:
    """Return in words, of each agent, how many of its sessions are deleted soon and not kept."""
    kept = KeepState(home or default_home()).agents()
    return [
        f"{count(number, 'session')} of {plain(agent)} {'is' if number == 1 else 'are'} deleted within 7 days"
        for agent, number in going.items()
        if agent not in kept
    ]


def _size(home: str | None) -> list[Notice]:
    """What a home takes that hooks fill by themselves."""
    if not has_hooks(home):
        return []
    text = use_line(home)
    return [Notice(text, "hooks status")] if text else []


def _offers(home: str | None) -> list[Notice]:
    """What could be installed, the most useful first."""
    agents = unseen_agents(home)
    who = agents[0] if len(agents) == 1 else count(len(agents), "agent")
    return [Notice(f"Turns of {who} cannot be taken back yet", "hooks install", is_offer=True)] if agents else []
