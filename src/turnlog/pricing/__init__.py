"""What usage costs: at the prices of the day it happened, for the model that answered.

The prices are a list that comes along, as of a day; `book` reads it, and `generate` writes it from genai-prices.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_EVEN, Decimal

from msgspec import Struct

from turnlog.log.entry import Compaction, Entry, Message, Spent
from turnlog.log.usage import Usage
from turnlog.pricing.book import prices_of, rates_at


class Cost(Struct, frozen=True):
    """What some requests cost, in micro-dollars. What has no known price is in no sum: it is named instead."""

    reported_micros: int = 0
    """As the provider, or the agent it was imported from, said it."""
    computed_micros: int = 0
    """From tokens and prices, where nobody said it."""
    models: dict[str, int] = {}
    """Both together, by the model that answered; "" where none is named."""
    unpriced: dict[str, Usage] = {}
    """Usage without a known price, by model."""
    untiered: dict[str, Usage] = {}
    """Usage that is in the sum at the lowest price of several, because it is a total: how large the single prompts
    were, and so which price applied to them, cannot be known."""

    @property
    def micros(self) -> int:
        """Everything that has a price."""
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
        """Everything that led to where this session stands."""
        return self.own + self.inherited + self.subagents


class Price(Struct, frozen=True):
    """What one request costs. `is_lowest` where several prices could have applied and the lowest was taken."""

    dollars: Decimal
    is_lowest: bool = False


def cost_of(entries: Iterable[Entry]) -> Cost:
    """What these entries cost. A request that became several entries is paid once."""
    paid: set[str] = set()
    reported: dict[str, int] = {}
    computed: dict[str, Decimal] = {}
    unpriced: dict[str, Usage] = {}
    untiered: dict[str, Usage] = {}
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
        price = price_of(usage, model, entry.clock or entry.at, is_total=is_total)
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
    """What a request costs with the prices of that moment; None if nobody knows.

    Some prices depend on how large the prompt is, for all of its tokens. `is_total` means that the usage may be that of
    several requests: then the lowest price is taken wherever that makes a difference.
    """
    tariff = None if at is None else terms_of(model, at).tariff
    return None if tariff is None else tariff.price(usage, is_total=is_total)


class Tariff(Struct, frozen=True):
    """The prices of one model. Up to the next size of a prompt where they change, each token costs as much."""

    starts: list[int]
    """Prompts longer than these cost otherwise."""
    has_input: bool
    has_output: bool
    rates: list[list[Decimal] | None]
    """Up to each of those sizes and beyond: dollars for the request itself, and for one token of each kind."""

    def price(self, usage: Usage, *, is_total: bool) -> Price | None:
        """What a request costs; see `price_of`."""
        counts = (
            usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.cache_write_1h_tokens,
            usage.output_tokens,
        )  # fmt: skip
        size = sum(counts[:4])
        if (size and not self.has_input) or (counts[4] and not self.has_output) or min(counts) < 0:
            return None  # many models are listed without prices; what is below zero, somebody else wrote
        step = bisect_left(self.starts, size)
        is_lowest = is_total and step > 0
        rates = self.rates[0 if is_lowest else step]
        if rates is None:
            return None
        fee, *each = rates
        return Price(sum((rate * count for rate, count in zip(each, counts, strict=True)), fee), is_lowest)


class Terms(Struct, frozen=True):
    """A tariff, None if nobody knows it, and the days for which it holds: from `since` on, and before `until`."""

    tariff: Tariff | None
    since: date | None = None
    until: date | None = None

    def hold(self, at: datetime) -> bool:
        """Whether they are good for a request of that time."""
        day = at.astimezone(UTC).date()
        return (self.since is None or self.since <= day) and (self.until is None or day < self.until)


def terms_of(model: str, at: datetime) -> Terms:
    """What a request to a model costs at a time.

    Hourly prices give an empty validity range, so they are looked up each time.
    """
    prices = prices_of(model)
    if not prices:
        return Terms(None)
    rates = rates_at(prices, at)
    tariff = Tariff(rates.starts, rates.has_input, rates.has_output, rates.per_token)
    starts = sorted(one.since for one in prices if one.since is not None)
    day = at.astimezone(UTC).date()
    if any(one.hours is not None for one in prices):
        return Terms(tariff, day, day)
    before, after = [one for one in starts if one <= day], [one for one in starts if one > day]
    return Terms(tariff, before[-1] if before else None, after[0] if after else None)


def _sum(these: dict[str, Usage], others: dict[str, Usage]) -> dict[str, Usage]:
    total = dict(these)
    for model, usage in others.items():
        total[model] = total.get(model, Usage()) + usage
    return total


def _micros(dollars: Decimal) -> int:
    return int((dollars * 1_000_000).to_integral_value(ROUND_HALF_EVEN))
