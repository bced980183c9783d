"""`turnlog prices`."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from turnlog.cli.draw.table import table
from turnlog.cli.draw.text import one_line
from turnlog.cli.frame import shape
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import Argument, Option, declare
from turnlog.cli.frame.home import home_location
from turnlog.cli.pick.catalog import catalog
from turnlog.errors import Unavailable
from turnlog.machine.pricelist import own, updated
from turnlog.reader.folder import tilde

if TYPE_CHECKING:
    from decimal import Decimal

KINDS = ("input", "cache_read", "cache_write", "cache_write_1h", "output")
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


@declare(Argument("models", "[MODEL]..."), Option("--update", "Use the prices of the installed genai-prices."))
def command(models: tuple[str, ...], update: bool, as_json: bool) -> None:
    """Show what models cost today: API prices, in dollars for a million tokens.

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
        book.cache_clear()
    listed = [_row(model) for model in models or _here()]
    if any(row["input"] is None for row in listed) and models:
        listed = [_row(model) for row in listed for model in _meant(row)]
    mine = sorted(own_prices())
    if as_json:
        document = {"path": own(), "models": mine}
        print_json({"date": book().date.isoformat(), "source": book().source, "own": document, "models": listed})
        return
    if listed:
        head = ("MODEL", "INPUT", "CACHE READ", "CACHE WRITE", "1 H", "OUTPUT", "")
        cells = [(row["model"], *(_money(row[kind]) for kind in KINDS), _above(row["above"])) for row in listed]
        for line in table(head, cells, right=(1, 2, 3, 4, 5)):
            print(line)
        print()
    print(f"dollars for a million tokens, as of {book().date:%-d %B %Y} ({book().source})")
    print(one_line(f"your own: {', '.join(mine) or 'none'}, in {tilde(own())}"))


def _here() -> list[str]:
    with catalog(home_location()) as asked:
        *rows, _ = asked.usage(by="model")
    return [row.group for row in rows if row.group]


def _meant(row: dict[str, Any]) -> list[str]:
    """A model by its name; where that has no price, those here that have it in theirs."""
    name = row["model"]
    parts = [model for model in _here() if name.lower() in model.lower()] if row["input"] is None else []
    return parts or [name]


def _update() -> None:
    from turnlog.formats import put_file
    from turnlog.pricing.generate import generated

    data, path = generated(datetime.now(UTC).date()), updated()
    if not path:
        raise Unavailable("there is no folder to keep prices in", hint="set HOME or XDG_STATE_HOME")
    put_file(os.path.realpath(path), data, force=True)


def _row(model: str) -> dict[str, Any]:
    from turnlog.pricing.book import prices_of, rates_at

    prices = prices_of(model)
    rates_now = rates_at(prices, datetime.now(UTC)) if prices else None
    rates = rates_now.rates[0] if rates_now is not None else None
    if rates_now is None or rates is None or not rates_now.has_input:
        return {"model": model, **dict.fromkeys(KINDS), "above": None}
    by_kind = dict(zip(KINDS, map(float, rates[1:]), strict=True))
    return {"model": model, **by_kind, "above": rates_now.starts[0] if rates_now.starts else None}


def _money(rate: Decimal | None) -> str:
    return "?" if rate is None else f"{rate:,.2f}" if round(rate, 2) == rate else f"{rate:,.4f}"


def _above(start: int | None) -> str:
    return f"more above {start:,}" if start else ""
