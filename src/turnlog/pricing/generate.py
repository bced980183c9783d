"""Writing the list of prices from the installed genai-prices: `python -m turnlog.pricing.generate`.

This makes the bundled list; `turnlog prices --update` makes one for a user with a newer library.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from turnlog.errors import Unsupported
from turnlog.machine.pricelist import bundled
from turnlog.pricing.book import Book, Model, Provider, Rates

if TYPE_CHECKING:
    from genai_prices import types

_MILLION = 1_000_000
_SIGNS = {"equals": "=", "starts_with": "^", "ends_with": "$", "contains": "~", "regex": "/"}
_JSON = msgspec.json.Encoder(decimal_format="number")


def generated(day: date) -> bytes:
    """The list of prices as of that day, with a line for each model."""
    try:
        from genai_prices import data_snapshot
    except ModuleNotFoundError as error:
        hint = "pip install -U 'turnlog[prices]'"
        raise Unsupported(f"newer prices come with genai-prices; missing: {error.name}", hint=hint) from None
    source = f"genai-prices {version('genai-prices')}"
    providers = [_provider(provider) for provider in data_snapshot.get_snapshot().providers]
    text = _JSON.encode(Book(day, source, providers))
    return text.replace(b'{"id":', b'\n{"id":') + b"\n"


def _provider(theirs: types.Provider) -> Provider:
    models = [
        Model(model.id, _clause(model.match), msgspec.Raw(_JSON.encode(_prices(model)))) for model in theirs.models
    ]
    return Provider(
        theirs.id,
        _clause(theirs.provider_match),
        _clause(theirs.model_match),
        theirs.fallback_model_providers or [],
        msgspec.Raw(_JSON.encode(models)),
    )


def _clause(theirs: Any) -> Any:
    """A pattern for `book.matches`. Names are compared in lower case."""
    if theirs is None:
        return None
    fields = cast("dict[str, Any]", vars(theirs))
    ((kind, value),) = fields.items()
    if kind in ("or_", "and_"):
        return ["any" if kind == "or_" else "all", *map(_clause, value)]
    return _SIGNS[kind] + (value if kind == "regex" else str(value).lower())


def _prices(model: types.ModelInfo) -> list[Rates]:
    from genai_prices.types import ModelPrice, StartDateConstraint, TimeOfDateConstraint

    if isinstance(model.prices, ModelPrice):
        return [_rates_of(model.prices)]
    rates: list[Rates] = []
    for dated in model.prices:
        limit = dated.constraint
        since = limit.start_date if isinstance(limit, StartDateConstraint) else None
        hours = (_utc(limit.start_time), _utc(limit.end_time)) if isinstance(limit, TimeOfDateConstraint) else None
        rates.append(msgspec.structs.replace(_rates_of(dated.prices), since=since, hours=hours))
    return rates


def _utc(moment: time) -> time:
    if moment.tzinfo is None:
        return moment
    return datetime.combine(date(2026, 1, 1), moment).astimezone(UTC).time()


def _rates_of(prices: types.ModelPrice) -> Rates:
    from genai_prices.types import TieredPrices

    named: dict[str, Decimal | TieredPrices] = {
        key: value for key, value in vars(prices).items() if isinstance(value, (Decimal, TieredPrices))
    }
    tiered = [value for value in named.values() if isinstance(value, TieredPrices)]
    starts = sorted({tier.start for value in tiered for tier in value.tiers})
    lowest = {key: value.base if isinstance(value, TieredPrices) else value for key, value in named.items()}
    rates = [_rates(lowest, 0), *(_rates(named, start + 1) for start in starts)]
    return Rates(starts=starts, has_input="input_mtok" in named, has_output="output_mtok" in named, rates=rates)


def _rates(named: Mapping[str, Decimal | types.TieredPrices], size: int) -> list[Decimal] | None:
    """The price of the request itself, and of a million tokens of each kind, for prompts of at least that size."""
    ones = [tuple(int(index == kind) + size * (index == 0) for index in range(5)) for kind in range(-1, 5)]
    totals = [total for counts in ones if (total := _total(named, counts)) is not None]
    if len(totals) < len(ones):
        return None
    rates = [total - totals[0] for total in totals[1:]]
    return [_short(totals[0] - rates[0] * size), *(_short(rate * _MILLION) for rate in rates)]


def _short(number: Decimal) -> Decimal:
    """The number without trailing zeros and without an exponent."""
    return Decimal(format(number.normalize(), "f"))


def _total(named: Mapping[str, Decimal | types.TieredPrices], counts: tuple[int, ...]) -> Decimal | None:
    from genai_prices.types import ModelPrice
    from genai_prices.types import Usage as Counts

    fresh, read, written, hour, output = counts
    try:
        price = ModelPrice(**named).calc_price(
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
    return price["total_price"]


if __name__ == "__main__":
    Path(bundled()).write_bytes(generated(datetime.now(UTC).date()))
