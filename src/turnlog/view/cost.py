"""The cost of each message, if known: as reported, or at the prices of its day."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN

from turnlog.log.entry import AnyEntry, Compaction, Message, Spent
from turnlog.log.usage import Usage
from turnlog.pricing import price_of


class Costs:
    """Prices entries in the order of the log: a request that became several of them is paid once."""

    def __init__(self) -> None:
        self._paid: set[str] = set()

    def __call__(self, entry: AnyEntry) -> int | None:
        """The cost of an entry in micro-dollars; None if it is unknown, or counted already."""
        if not isinstance(entry, (Message, Compaction, Spent)) or entry.usage is None:
            return None
        if entry.request is not None:
            if entry.request in self._paid:
                return None
            self._paid.add(entry.request)
        if entry.usage.cost_micros is not None:
            return entry.usage.cost_micros
        if not entry.model or entry.usage == Usage():
            return None
        price = price_of(entry.usage, entry.model, entry.clock or entry.at)
        return None if price is None else int((price.dollars * 1_000_000).to_integral_value(ROUND_HALF_EVEN))
