"""Which agents are here: where, how many sessions, what of them cannot be read, and how long they leave them."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct

from turnlog.exchange.keeping.retention import limit_of
from turnlog.formats import Format, Record, Source, every, unknown_type
from turnlog.machine.formatplaces import places_of

if TYPE_CHECKING:
    from turnlog.catalog import Card, Catalog

_NEWEST = 20
_BYTES = 64 << 20
"""The maximum number of bytes read to find records of unknown types."""


class AgentPresence(Struct, frozen=True, kw_only=True):
    """One agent on this machine."""

    agent: str
    homes: list[str]
    """The folders that are there."""
    sessions: int
    bytes: int
    unreadable: dict[str, str]
    """Files and folders that cannot be read, and why."""
    damaged: dict[str, int]
    """Files in which places cannot be read, and how many."""
    days: float | None
    """After which it deletes a session; None for never."""
    settings: str | None
    """The settings file that says so."""
    settings_problem: str
    going: int
    """How many it deletes within a week."""
    gone: int
    """How many are gone, and still counted."""
    unknown: dict[str, int]
    """How many records of each type that is not known, in the newest sessions."""


def agents_here(catalog: Catalog) -> list[AgentPresence]:
    """All that have a folder here, or had a session."""
    cards: dict[str, list[Card]] = {}
    for card in catalog.cards(everything=True):
        if not card.is_ours and card.agent is not None:
            cards.setdefault(card.agent, []).append(card)
    going, gone = catalog.going(), catalog.gone()
    agents: list[AgentPresence] = []
    for name, form in every():
        homes = {home: problem for home in form.homes(places_of(None)) if (problem := _problem(home)) is not None}
        if homes or name in cards or name in gone:
            agents.append(_presence(name, form, homes, cards.get(name, []), going.get(name, 0), gone.get(name, 0)))
    return agents


def _problem(home: str) -> str | None:
    """Why nobody can look into a folder of sessions, "" for nothing; None if there is no such folder."""
    try:
        os.scandir(home).close()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return f"it cannot be read: {error.strerror or error}"
    return ""


def _presence(
    name: str, form: Format, homes: dict[str, str], cards: list[Card], going: int, gone: int
) -> AgentPresence:
    limit = None if form.retention is None else limit_of(name, form.retention)
    return AgentPresence(
        agent=name,
        homes=list(homes),
        sessions=sum(card.parent is None for card in cards),
        bytes=sum({card.path: card.size_bytes for card in cards}.values()),
        unreadable={home: problem for home, problem in homes.items() if problem}
        | {card.path: card.problem for card in cards if card.problem},
        damaged={card.path: card.damage for card in cards if card.damage and not card.problem},
        days=None if limit is None else limit.days,
        settings=None if limit is None else limit.settings,
        settings_problem="" if limit is None else limit.problem,
        going=going,
        gone=gone,
        unknown=_unknown(form, cards[:_NEWEST]),
    )


def _unknown(form: Format, cards: list[Card]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    left = _BYTES
    for card in cards:
        if card.size_bytes > left or card.agent is None:
            continue  # too large to be read for this; an older one may be small
        left -= card.size_bytes
        try:
            for step in form.read(Source(card.agent, card.path, card.key)).steps:
                kind = unknown_type(step.entry) if isinstance(step, Record) else None
                if kind is not None:
                    counts[kind] += 1
        except OSError:
            continue  # it is among those that cannot be read, or only kept
    return dict(counts.most_common())
