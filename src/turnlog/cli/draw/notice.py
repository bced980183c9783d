"""What a person should know without having asked: a line each, with the command that does something about it.

A warning stands as long as it is true. Of what could be installed, one thing is suggested at a time.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from turnlog.view.number import count

if TYPE_CHECKING:
    from turnlog.catalog import Standing


class Notice(NamedTuple):
    """One line."""

    text: str
    command: str
    """Without `turnlog`."""
    is_offer: bool = False
    """Whether it suggests to install something."""


def notices(standing: Standing) -> list[Notice]:
    """All that are true now, as far as the commands for them are there."""
    found = [*_pending(standing), *_losses(), *_offers()]
    shown = [notice for notice in found if _is_command(notice.command.split()[0])]
    offers = [notice for notice in shown if notice.is_offer]
    return [notice for notice in shown if notice not in offers[1:]]


def _pending(standing: Standing) -> list[Notice]:
    if not standing.pending:
        return []
    told = f"{standing.indexed:,} of {count(standing.sessions, 'session')} are counted so far, the newest first"
    return [Notice(told, "index")]


def _losses() -> list[Notice]:
    """Sessions that their agent is about to delete."""
    return []


def _offers() -> list[Notice]:
    """What could be installed, the most useful first."""
    return []


def _is_command(name: str) -> bool:
    return find_spec(f"turnlog.cli.commands.{name}") is not None
