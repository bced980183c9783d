"""The cost of usage: at the prices of the day of the request, for the model that answered.

The prices are a bundled list, as of a day; `book` reads it, and `generate` writes it from genai-prices.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_EVEN, Decimal

from msgspec import Struct

from turnlog.log.entry import Compaction, Entry, Message, Spent
from turnlog.log.usage import Usage
from turnlog.machine.pricelist import stamp
from turnlog.pricing.book import prices_of, rates_at


class Cost(Struct, frozen=True):
    """The cost of requests, in micro-dollars. Usage without a known price is in no sum, but listed."""

    reported_micros: int = 0
    """The cost as reported by the provider, or by the agent that the entries were imported from."""
    computed_micros: int = 0
    """The cost computed from tokens and prices, if it was not reported."""
    models: dict[str, int] = {}
    """The sum of both, by the model that answered; "" for an unknown model."""
    unpriced: dict[str, Usage] = {}
    """Usage without a known price, by model."""
    untiered: dict[str, Usage] = {}
    """Usage that is in the sum at the lowest of several prices, because it is a total.

    The sizes of its single prompts, and so the prices that apply to them, are unknown.
    """

    @property
    def micros(self) -> int:
        """The sum of everything with a price."""
        return self.reported_micros + self.computed_micros

    @property
    def is_complete(self) -> bool:
        """Whether everything had a price."""
        return not self.unpriced

    def __add__(self, other: Cost) -> Cost:
        models = dict(self.models)
        for model, micros in other.models.items():
            models[model] = models.get(model, 0) + micros
        return Cost(
            self.reported_micros + other.reported_micros,
            self.computed_micros + other.computed_micros,
            models,
            _sum(self.unpriced, other.unpriced),
            _sum(self.untiered, other.untiered),
        )


class CostReport(Struct, frozen=True):
    """What a session cost. Only `own` may be summed over sessions."""

    own: Cost
    inherited: Cost
    """Spent before the fork, by the session this one was forked from."""
    subagents: Cost

    @property
    def total(self) -> Cost:
        """The cost of everything that led to the session's current state."""
        return self.own + self.inherited + self.subagents


class Price(Struct, frozen=True):
    """The cost of one request. `is_lowest`: several prices could apply, and the lowest was taken."""

    dollars: Decimal
    is_lowest: bool = False


def cost_of(entries: Iterable[Entry]) -> Cost:
    """The cost of these entries. A request that became several entries is billed once."""
    paid: set[str] = set()
    reported: dict[str, int] = {}
    computed: dict[str, Decimal] = {}
    unpriced: dict[str, Usage] = {}
    untiered: dict[str, Usage] = {}
    as_of = stamp()
    for entry in entries:
        if not isinstance(entry, (Message, Compaction, Spent)) or entry.usage is None:
            continue
        if entry.request is not None:
            if entry.request in paid:
                continue
            paid.add(entry.request)
        usage, model = entry.usage, entry.model or ""
        if usage.cost_micros is not None:
            reported[model] = reported.get(model, 0) + usage.cost_micros
            continue
        if usage == Usage():
            continue
        is_total = isinstance(entry, Spent) and entry.request is None
        at = entry.clock or entry.at
        tariff = None if at is None else terms_of(model, at, as_of).tariff
        price = None if tariff is None else tariff.price(usage, is_total=is_total)
        if price is None:
            unpriced = _sum(unpriced, {model: usage})
            continue
        computed[model] = computed.get(model, Decimal(0)) + price.dollars
        if price.is_lowest:
            untiered = _sum(untiered, {model: usage})
    rounded = {model: _micros(dollars) for model, dollars in computed.items()}
    models = {model: reported.get(model, 0) + rounded.get(model, 0) for model in (*reported, *rounded)}
    return Cost(sum(reported.values()), sum(rounded.values()), models, unpriced, untiered)


def price_of(usage: Usage, model: str, at: datetime | None, *, is_total: bool = False) -> Price | None:
    """The cost of a request at the prices of that moment; None if unknown.

    Some prices depend on the size of the prompt, for all of its tokens. `is_total` means that the usage may be that of
    several requests: then the lowest price is taken if the price depends on the size.
    """
    tariff = None if at is None else terms_of(model, at).tariff
    return None if tariff is None else tariff.price(usage, is_total=is_total)


class Tariff(Struct, frozen=True):
    """The prices of one model, in steps by the size of the prompt."""

    starts: list[int]
    """The prompt sizes above which the next step applies."""
    has_input: bool
    has_output: bool
    rates: list[list[Decimal] | None]
    """For each step: dollars for the request itself, and for one token of each kind."""

    def price(self, usage: Usage, *, is_total: bool) -> Price | None:
        """The cost of a request; see `price_of`."""
        counts = (
            usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.cache_write_1h_tokens,
            usage.output_tokens,
        )  # fmt: skip
        size = sum(counts[:4])
        if (size and not self.has_input) or (counts[4] and not self.has_output) or min(counts) < 0:
            return None  # many models are listed without prices; a count below zero is invalid input
        step = bisect_left(self.starts, size)
        is_lowest = is_total and step > 0
        rates = self.rates[0 if is_lowest else step]
        if rates is None:
            return None
        fee, *each = rates
        return Price(sum((rate * count for rate, count in zip(each, counts, strict=True)), fee), is_lowest)


class Terms(Struct, frozen=True):
    """A tariff, None if unknown, and the days on which it is valid: from `since` on, and before `until`."""

    tariff: Tariff | None
    since: date | None = None
    until: date | None = None

    def hold(self, at: datetime) -> bool:
        """Whether the terms are valid for a request at that time."""
        day = at.astimezone(UTC).date()
        return (self.since is None or self.since <= day) and (self.until is None or day < self.until)


def terms_of(model: str, at: datetime, as_of: str | None = None) -> Terms:
    """The terms of a model at a time. `as_of` is a stamp of the price lists, if the caller has a fresh one.

    Hourly prices give an empty validity range, so they are looked up each time.
    """
    prices = prices_of(model, as_of)
    if not prices:
        return Terms(None)
    rates = rates_at(prices, at)
    tariff = Tariff(rates.starts, rates.has_input, rates.has_output, rates.per_token)
    starts = sorted(dated.since for dated in prices if dated.since is not None)
    day = at.astimezone(UTC).date()
    if any(dated.hours is not None for dated in prices):
        return Terms(tariff, day, day)
    before, after = [start for start in starts if start <= day], [start for start in starts if start > day]
    return Terms(tariff, before[-1] if before else None, after[0] if after else None)


def _sum(these: dict[str, Usage], others: dict[str, Usage]) -> dict[str, Usage]:
    total = dict(these)
    for model, usage in others.items():
        total[model] = total.get(model, Usage()) + usage
    return total


def _micros(dollars: Decimal) -> int:
    return int((dollars * 1_000_000).to_integral_value(ROUND_HALF_EVEN))
