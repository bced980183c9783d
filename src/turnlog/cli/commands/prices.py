"""`turnlog prices`."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import asdict

from turnlog.cli.draw.table import table
from turnlog.cli.frame.command import Argument, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.home import home_location
from turnlog.cli.pick.catalog import open_catalog
from turnlog.errors import Unavailable
from turnlog.machine.pricelist import own, updated
from turnlog.reader.naming.here import tilde
from turnlog.view.number import rate, tokens
from turnlog.view.visible import one_line

GROUP = "Care", 18
CHANGES = shape.NOTHING
FIELDS = {
    "date": shape.text("the day of the prices"),
    "source": shape.text("the source of the prices"),
    "own": shape.one("your own prices", {"path": shape.text(), "models": shape.texts()}),
    "models": shape.items(
        "dollars for a million tokens; null where no price is known",
        {
            "model": shape.text(),
            "input": shape.real(null=True),
            "cache_read": shape.real(null=True),
            "cache_write": shape.real(null=True),
            "cache_write_1h": shape.real(null=True),
            "output": shape.real(null=True),
            "above": shape.number("prompts above this number of tokens cost more", null=True),
        },
    ),
}


@declare(
    Argument("models", "[MODEL]..."),
    Option("--update", "Store the prices of the installed genai-prices, and use them."),
)
def command(models: tuple[str, ...], update: bool, as_json: bool) -> None:
    """Show the API prices of models, in dollars for a million tokens.

    Without a MODEL, it lists those of the sessions on this machine; for these, a part of a name is enough. Prices come
    with Turnlog, as of a fixed day; nothing is fetched. For newer prices without a newer Turnlog: pip install -U
    'turnlog[prices]', then --update.

    Your own prices, for your own models or instead of the list's, are read from ~/.config/turnlog/prices.json:
    {"my-model": {"input": 0.5, "output": 2}}. It may also have cache_read, cache_write, cache_write_1h and since, a
    day.

    \b
    turnlog prices
    turnlog prices claude-sonnet-4-5 gpt-5.5
    """
    from turnlog.pricing.book import book, own_prices

    if update:
        _update()
    listed = [_price(model) for model in models or _models_here()]
    if models and any(row.input is None for row in listed):
        models_here = _models_here()
        listed = [_price(model) for row in listed for model in _candidates(row, models_here)]
    own_models = sorted(own_prices())
    if as_json:
        document = {"path": own(), "models": own_models}
        print_json({"date": book().date.isoformat(), "source": book().source, "own": document,
                    "models": list(map(asdict, listed))})  # fmt: skip
        return
    if listed:
        head = ("MODEL", "INPUT", "CACHE READ", "CACHE WRITE", "1 H", "OUTPUT", "MORE ABOVE")
        cells = [(row.model, *map(rate, row.rates), tokens(row.above) if row.above else "") for row in listed]
        for line in table(head, cells, right=(1, 2, 3, 4, 5, 6)):
            print(line)
        print()
    print(f"dollars for a million tokens, as of {book().date:%-d %B %Y} ({book().source})")
    print(one_line(f"your own: {', '.join(own_models) or 'none'}, in {tilde(own())}"))


class ModelPrice(Struct):
    """Dollars for a million tokens of a model; None where no price is known."""

    model: str
    input: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None
    output: float | None = None
    above: int | None = None
    """Prompts above this number of tokens cost more."""

    @property
    def rates(self) -> tuple[float | None, ...]:
        """The prices in the order of the columns."""
        return self.input, self.cache_read, self.cache_write, self.cache_write_1h, self.output


def _models_here() -> list[str]:
    with open_catalog(home_location()) as catalog:
        *rows, _ = catalog.usage(by="model")
    return [row.group for row in rows if row.group]


def _candidates(price: ModelPrice, here: list[str]) -> list[str]:
    """Return a model by its name; where that has no price, those here that have it in theirs."""
    parts = [model for model in here if price.model.lower() in model.lower()] if price.input is None else []
    return parts or [price.model]


def _update() -> None:
    from turnlog.interop.place import put_file
    from turnlog.pricing.generate import generated

    data, path = generated(datetime.now(UTC).date()), updated()
    if not path:
        raise Unavailable("there is no folder to keep prices in", hint="set HOME or XDG_STATE_HOME")
    put_file(os.path.realpath(path), data, force=True)


def _price(model: str) -> ModelPrice:
    from turnlog.pricing.book import prices_of, rates_at

    prices = prices_of(model)
    rates_now = rates_at(prices, datetime.now(UTC)) if prices else None
    rates = rates_now.rates[0] if rates_now is not None else None
    if rates_now is None or rates is None or not rates_now.has_input:
        return ModelPrice(model)
    return ModelPrice(model, *map(float, rates[1:]), above=rates_now.starts[0] if rates_now.starts else None)
