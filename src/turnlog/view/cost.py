"""The cost of each message, if known: as reported, or at the prices of its day."""

from __future__ import annotations

import time
from decimal import ROUND_HALF_EVEN

from turnlog.log.entry import AnyEntry, Compaction, Message, Spent
from turnlog.log.usage import Usage
from turnlog.machine.pricelist import stamp
from turnlog.pricing import terms_of

_FRESH_S = 1.0
"""How long the stamp of the price lists is believed: it takes three looks at the disk."""


class Costs:
    """Prices entries in the order of the log: a request that became several of them is paid once."""

    def __init__(self) -> None:
        self._paid: set[str] = set()
        self._prices, self._looked_at = "", float("-inf")

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
        at = entry.clock or entry.at
        tariff = None if at is None else terms_of(entry.model, at, self._price_stamp()).tariff
        price = None if tariff is None else tariff.price(entry.usage, is_total=False)
        return None if price is None else int((price.dollars * 1_000_000).to_integral_value(ROUND_HALF_EVEN))

    def _price_stamp(self) -> str:
        now = time.monotonic()
        if now - self._looked_at > _FRESH_S:
            self._prices, self._looked_at = stamp(), now
        return self._prices
