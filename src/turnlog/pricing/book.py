"""The list of prices: the one that comes with Turnlog or a newer one, and a person's own before either.

All are files of JSON, read when the first price is needed; nothing is fetched.
"""

# Without `from __future__ import annotations`, as in `log/entry.py`.

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache, cached_property, lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from turnlog.errors import Invalid
from turnlog.log.text import pattern
from turnlog.machine.pricelist import bundled, own, updated

_PER_MILLION_EXPONENT = -6
_COMPACT_DATE = pattern(r"(?<=-)(20\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=-|:|$)")
_BEDROCK = ("anthropic.", "amazon.", "us.", "eu.", "apac.", "global.")
"""How model ids of Amazon Bedrock begin."""
_RESELLER = "openrouter"
_CLAUSES: dict[str, Callable[[str, str], bool]] = {
    "=": lambda text, pattern: text == pattern,
    "^": lambda text, pattern: text.startswith(pattern),
    "$": lambda text, pattern: text.endswith(pattern),
    "~": lambda text, pattern: pattern in text,
    "/": lambda text, pattern: re.search(pattern, text) is not None,
}


Clause = str | list[Any]
"""Which names are meant: see `matches`."""


class Rates(Struct, frozen=True, omit_defaults=True, dict=True):
    """Prices of a model, from a day on or at some hours. In dollars for a million tokens, and for a request."""

    since: date | None = None
    hours: tuple[time, time] | None = None
    """From, and before; in UTC."""
    starts: list[int] = []
    """Prompts longer than these have the next rates."""
    has_input: bool = True
    has_output: bool = True
    rates: list[list[Decimal] | None] = []
    """For the request itself, input, cache read, cache write, cache write (1 h), output."""

    def hold(self, at: datetime) -> bool:
        """Whether they are those of that time."""
        if self.since is not None:
            return self.since <= at.date()
        if self.hours is None:
            return True
        start, end = self.hours
        moment = at.time()
        return start <= moment < end if start <= end else moment >= start or moment < end

    @cached_property
    def per_token(self) -> list[list[Decimal] | None]:
        """The same for one token instead of a million; the first of each is for the request itself."""
        return [
            None if each is None else [each[0], *(rate.scaleb(_PER_MILLION_EXPONENT) for rate in each[1:])]
            for each in self.rates
        ]


class Model(Struct, frozen=True, omit_defaults=True):
    """One model: which names are its, and its prices. The last that holds counts."""

    id: str
    match: Clause
    prices: msgspec.Raw
    """`Rates` that nobody has decoded yet: most are never asked for."""

    def rates(self) -> list[Rates]:
        """Its prices."""
        return msgspec.json.decode(self.prices, type=list[Rates])


class Provider(Struct, frozen=True, omit_defaults=True):
    """Who serves models: the names it goes by, and the models that are its unless another is named."""

    id: str
    names: Clause | None = None
    serves: Clause | None = None
    instead: list[str] = []
    """Whose prices count for what it has no own for."""
    models: msgspec.Raw = msgspec.Raw(b"[]")
    """Each a `Model`; nobody has decoded them yet: most providers are never asked."""

    def listed(self) -> list[Model]:
        """Its models."""
        return msgspec.json.decode(self.models, type=list[Model])


class Book(Struct, frozen=True):
    """A list of prices as of a day."""

    date: date
    source: str
    providers: list[Provider]

    def find(self, name: str, provider: str | None) -> Model | None:
        """The model of that name, of that provider or else of one that serves it."""
        name = name.lower()
        dashed = _COMPACT_DATE.sub(lambda match: "-".join(match.groups()) if _is_date(match) else match.group(), name)
        server = self._server(name) if provider is None else self._provider(provider.lower().strip())
        model = None if server is None else self._of(server, name) or self._of(server, dashed)
        return self._resold(name) if model is None and provider is None else model

    def _resold(self, name: str) -> Model | None:
        """One that is not on the list of its maker: the reseller of all has them at their prices."""
        others = (model for one in self.providers if one.id == _RESELLER for model in one.listed())
        return next((model for model in others if model.id.rpartition("/")[2] == name), None)

    def _server(self, name: str) -> Provider | None:
        return next((one for one in self.providers if one.serves is not None and matches(one.serves, name)), None)

    def _provider(self, name: str) -> Provider | None:
        for one in self.providers:
            if one.id == name:
                return one
        return next((one for one in self.providers if one.names is not None and matches(one.names, name)), None)

    def _of(self, provider: Provider, name: str) -> Model | None:
        others = (one for other in provider.instead for one in self.providers if one.id == other)
        for one in (provider, *others):
            for model in one.listed():
                if matches(model.match, name):
                    return model
        return None


class _Own(Struct, frozen=True, forbid_unknown_fields=True):
    """What a person writes: dollars for a million tokens."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None
    since: date | None = None

    def rates(self) -> Rates:
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        hour = write if self.cache_write_1h is None else self.cache_write_1h
        return Rates(since=self.since, rates=[[Decimal(0), self.input, read, write, hour, self.output]])


def _is_date(match: re.Match[str]) -> bool:
    try:
        date(*map(int, match.groups()))
    except ValueError:
        return False
    return True


def matches(clause: Clause, text: str) -> bool:
    """Whether a name is meant: `=whole`, `^beginning`, `$end`, `~part`, `/expression`, or a list of `any` or `all`."""
    if not isinstance(clause, str):
        how, *parts = clause
        return (any if how == "any" else all)(matches(part, text) for part in parts)
    return _CLAUSES[clause[0]](text, clause[1:])


@cache
def book() -> Book:
    """The newest list there is."""
    ours = _read(bundled())
    try:
        newer = _read(updated())
    except (OSError, msgspec.DecodeError):  # there is none, or none that this version knows
        return ours
    return newer if newer.date > ours.date else ours


def _read(path: str) -> Book:
    with open(path, "rb") as file:
        return msgspec.json.decode(file.read(), type=Book)


@cache
def own_prices() -> dict[str, list[Rates]]:
    """A person's own, by the name of the model; one with `*` at its end is for all that begin so."""
    try:
        with open(own(), "rb") as file:
            listed = msgspec.json.decode(file.read(), type=dict[str, _Own | list[_Own]])
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise Invalid(f"{own()} could not be read: {error.strerror}") from None
    except msgspec.DecodeError as error:
        hint = '{"my-model": {"input": 1.5, "output": 6}}, in dollars for a million tokens'
        raise Invalid(f"{own()}: {error}", hint=hint) from None
    return {
        name.lower(): [one.rates() for one in (prices if isinstance(prices, list) else [prices])]
        for name, prices in listed.items()
    }


@lru_cache(maxsize=256)
def prices_of(model: str) -> list[Rates]:
    """Those of a model, with or without the provider in front: `gpt-5.5`, `openai/gpt-5.5`, `openai:gpt-5.5`."""
    model = model.removeprefix("litellm/")
    if not model:
        return []
    mine = own_prices()
    name = model.lower()
    starred = [key for key in mine if key.endswith("*") and name.startswith(key[:-1])]
    if name in mine or starred:
        return mine[name] if name in mine else mine[max(starred, key=len)]
    tries: list[tuple[str, str | None]] = [(model, None)]
    for mark in ("/", ":"):
        provider, separator, rest = model.partition(mark)
        if separator and provider and rest:
            tries.insert(0, (rest, provider))
    if model.startswith(_BEDROCK):
        tries.insert(0, (model, "aws"))
    for name, provider in tries:
        priced = book().find(name, provider)
        if priced is not None:
            return priced.rates()
    return []


def rates_at(prices: list[Rates], at: datetime) -> Rates:
    """Those of a time: the last that hold, else the first."""
    moment = at.astimezone(UTC)
    return next((one for one in reversed(prices) if one.hold(moment)), prices[0])
