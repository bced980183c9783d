"""What usage costs: at the prices of the day it happened, for the model that answered. Values in, values out.

The prices are those that the installed genai-prices brings along; nothing is fetched. It is imported when a price is
first needed: that takes longer than everything else here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from turnlog.errors import Unsupported
from turnlog.log.entry import Compaction, Entry, Message, Spent
from turnlog.log.usage import Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, TieredPrices


_BEDROCK = ("anthropic.", "amazon.", "us.", "eu.", "apac.", "global.")
"""How model ids of Amazon Bedrock begin."""


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
    """What a request to a model costs at a time. Prices that change with the hour hold for no day."""
    found = _find(model)
    if found is None:
        return Terms(None)
    from genai_prices.types import StartDateConstraint

    tariff = _tariff_of(found.get_prices(at))
    constraints = [one.constraint for one in found.prices] if isinstance(found.prices, list) else []
    starts = sorted(one.start_date for one in constraints if isinstance(one, StartDateConstraint))
    day = at.astimezone(UTC).date()
    if len(starts) < sum(one is not None for one in constraints):
        return Terms(tariff, day, day)
    before, after = [one for one in starts if one <= day], [one for one in starts if one > day]
    return Terms(tariff, before[-1] if before else None, after[0] if after else None)


_tariffs: dict[int, tuple[ModelPrice, Tariff]] = {}
"""By the id of the prices, which are kept so that no others get it."""


def _tariff_of(prices: ModelPrice) -> Tariff:
    known = _tariffs.get(id(prices))
    if known is not None:
        return known[1]
    from genai_prices.types import TieredPrices

    named: dict[str, Decimal | TieredPrices] = {
        key: value for key, value in vars(prices).items() if isinstance(value, (Decimal, TieredPrices))
    }
    tiered = [value for value in named.values() if isinstance(value, TieredPrices)]
    starts = sorted({tier.start for value in tiered for tier in value.tiers})
    lowest = {key: value.base if isinstance(value, TieredPrices) else value for key, value in named.items()}
    rates = [_rates(lowest, 0), *(_rates(named, start + 1) for start in starts)]
    tariff = Tariff(starts, "input_mtok" in named, "output_mtok" in named, rates)
    _tariffs[id(prices)] = (prices, tariff)
    return tariff


def _rates(named: Mapping[str, Decimal | TieredPrices], size: int) -> list[Decimal] | None:
    """What the request itself costs, and one token of each kind, with a prompt of at least that size."""
    ones = [tuple(int(index == kind) + size * (index == 0) for index in range(5)) for kind in range(-1, 5)]
    totals = [total for counts in ones if (total := _total(named, counts)) is not None]
    if len(totals) < len(ones):
        return None
    rates = [total - totals[0] for total in totals[1:]]
    return [totals[0] - rates[0] * size, *rates]


def _total(named: Mapping[str, Decimal | TieredPrices], counts: tuple[int, ...]) -> Decimal | None:
    from genai_prices.types import ModelPrice
    from genai_prices.types import Usage as Counts

    fresh, read, written, hour, output = counts
    try:
        found = ModelPrice(**named).calc_price(
            Counts(
                input_tokens=fresh + read + written + hour,
                cache_read_tokens=read,
                cache_write_tokens=written + hour,
                cache_write_1h_tokens=hour,
                output_tokens=output,
            )
        )
    except ValueError:
        return None
    return found["total_price"]


@lru_cache(maxsize=256)
def _find(model: str) -> ModelInfo | None:
    """The model of that name, with or without the provider in front: `gpt-5.5`, `openai/gpt-5.5`, `openai:gpt-5.5`."""
    if not model:
        return None
    try:
        from genai_prices import data_snapshot
    except ModuleNotFoundError as error:
        raise Unsupported(
            "no prices are installed", hint=f"pip install 'turnlog[prices]'; missing: {error.name}"
        ) from None
    snapshot = data_snapshot.get_snapshot()
    tries: list[tuple[str, str | None]] = [(model, None)]
    for mark in ("/", ":"):
        provider, found, rest = model.partition(mark)
        if found and provider and rest:
            tries.insert(0, (rest, provider))
    if model.startswith(_BEDROCK):
        tries.insert(0, (model, "aws"))
    for name, provider in tries:
        try:
            return snapshot.find_provider_model(name, None, provider, None)[1]
        except LookupError:
            continue
    return None


def _sum(these: dict[str, Usage], others: dict[str, Usage]) -> dict[str, Usage]:
    total = dict(these)
    for model, usage in others.items():
        total[model] = total.get(model, Usage()) + usage
    return total


def _micros(dollars: Decimal) -> int:
    return int((dollars * 1_000_000).to_integral_value(ROUND_HALF_EVEN))
