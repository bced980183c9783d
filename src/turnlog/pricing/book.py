"""The list of prices: the bundled one or a newer one; the user's own prices have precedence.

All are JSON files, read when the first price is needed, and again after they change; nothing is downloaded.
"""

# Without `from __future__ import annotations`, as in `log/entry.py`.

import os
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache, cached_property, lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from turnlog.errors import Invalid
from turnlog.log.codec import BAD_JSON
from turnlog.log.startup import pattern
from turnlog.machine.pricelist import bundled, own, stamp, updated

_PER_MILLION_EXPONENT = -6
_PRICES = 6
"""The number of prices in each list of `Rates.rates`."""
_COMPACT_DATE = pattern(r"(?<=-)(20\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=-|:|$)")
_BEDROCK = ("anthropic.", "amazon.", "us.", "eu.", "apac.", "global.")
"""The prefixes of model ids of Amazon Bedrock."""
_RESELLER = "openrouter"
_MOST_DOLLARS = 10**6
"""The highest price that a user may set, for a million tokens; the sum of many requests has to fit into 64 bits."""
_CLAUSES: dict[str, Callable[[str, str], bool]] = {
    "=": lambda text, pattern: text == pattern,
    "^": lambda text, pattern: text.startswith(pattern),
    "$": lambda text, pattern: text.endswith(pattern),
    "~": lambda text, pattern: pattern in text,
    "/": lambda text, pattern: re.search(pattern, text) is not None,
}


Clause = str | list[Any]
"""A pattern for names: see `matches`."""


class Rates(Struct, frozen=True, omit_defaults=True, dict=True):
    """Prices of a model, from a day on or at some hours. In dollars for a million tokens, and for a request."""

    since: date | None = None
    hours: tuple[time, time] | None = None
    """The first time, and the time after the last; in UTC."""
    starts: list[int] = []
    """The prompt sizes above which the next rates apply."""
    has_input: bool = True
    has_output: bool = True
    rates: list[list[Decimal] | None] = []
    """For the request itself, input, cache read, cache write, cache write (1 h), output."""

    def hold(self, at: datetime) -> bool:
        """Whether these rates apply at that time."""
        if self.since is not None:
            return self.since <= at.date()
        if self.hours is None:
            return True
        start, end = self.hours
        moment = at.time()
        return start <= moment < end if start <= end else moment >= start or moment < end

    @property
    def is_whole(self) -> bool:
        """Whether there is one list of rates for each step, and all prices are in each list."""
        is_complete = all(each is None or len(each) == _PRICES for each in self.rates)
        return is_complete and len(self.rates) == len(self.starts) + 1

    @cached_property
    def per_token(self) -> list[list[Decimal] | None]:
        """The rates for one token instead of a million; the first one of each step is for the request itself."""
        return [
            None if each is None else [each[0], *(rate.scaleb(_PER_MILLION_EXPONENT) for rate in each[1:])]
            for each in self.rates
        ]


class Model(Struct, frozen=True, omit_defaults=True):
    """One model: a pattern of its names, and its prices. The last one that applies counts."""

    id: str
    match: Clause
    prices: msgspec.Raw
    """`Rates`, decoded only when they are needed: most never are."""

    def rates(self) -> list[Rates]:
        """The decoded prices."""
        return msgspec.json.decode(self.prices, type=list[Rates])


class Provider(Struct, frozen=True, omit_defaults=True):
    """A provider of models: its names, and the models that belong to it unless another provider is named."""

    id: str
    names: Clause | None = None
    serves: Clause | None = None
    instead: list[str] = []
    """Providers whose prices apply to models that this one does not list."""
    models: msgspec.Raw = msgspec.Raw(b"[]")
    """A list of `Model`, decoded only when it is needed: most never are."""

    def listed(self) -> list[Model]:
        """The decoded models."""
        return msgspec.json.decode(self.models, type=list[Model])


class Book(Struct, frozen=True):
    """A list of prices as of a day."""

    date: date
    source: str
    providers: list[Provider]

    def find(self, name: str, provider: str | None) -> Model | None:
        """The model of that name: of `provider`, or else of the one that serves it."""
        name = name.lower()
        dashed = _COMPACT_DATE.sub(lambda match: "-".join(match.groups()) if _is_date(match) else match.group(), name)
        server = self._server(name) if provider is None else self._provider(provider.lower().strip())
        model = None if server is None else self._of(server, name) or self._of(server, dashed)
        return self._resold(name) if model is None and provider is None else model

    def check(self) -> None:
        """Raise `Invalid`, or what decoding raises, for a list that a later version wrote in a format of its own."""
        for provider in self.providers:
            _check_clause(provider.names)
            _check_clause(provider.serves)
            for model in provider.listed():
                _check_clause(model.match)
                if not all(rates.is_whole for rates in model.rates()):
                    raise Invalid(f"the prices of {model.id} are in an unknown format")

    def _resold(self, name: str) -> Model | None:
        """A model that is not listed for its maker, at the price of the reseller, which offers all models."""
        others = (model for provider in self.providers if provider.id == _RESELLER for model in provider.listed())
        return next((model for model in others if model.id.rpartition("/")[2] == name), None)

    def _server(self, name: str) -> Provider | None:
        return next(
            (provider for provider in self.providers if provider.serves is not None and matches(provider.serves, name)),
            None,
        )

    def _provider(self, name: str) -> Provider | None:
        for provider in self.providers:
            if provider.id == name:
                return provider
        return next(
            (provider for provider in self.providers if provider.names is not None and matches(provider.names, name)),
            None,
        )

    def _of(self, provider: Provider, name: str) -> Model | None:
        others = (source for other_id in provider.instead for source in self.providers if source.id == other_id)
        for source in (provider, *others):
            for model in source.listed():
                if matches(model.match, name):
                    return model
        return None


class _Own(Struct, frozen=True, forbid_unknown_fields=True):
    """A price in the user's own file: dollars for a million tokens."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None
    since: date | None = None

    def __post_init__(self) -> None:
        for price in (self.input, self.output, self.cache_read, self.cache_write, self.cache_write_1h):
            if price is not None and not (price.is_finite() and 0 <= price <= _MOST_DOLLARS):
                raise ValueError(f"{price} is not a price: 0 to {_MOST_DOLLARS:,} dollars")

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
    """Whether a name matches: `=whole`, `^beginning`, `$end`, `~part`, `/expression`, or a list with `any` or `all`."""
    if not isinstance(clause, str):
        how, *parts = clause
        return (any if how == "any" else all)(matches(part, text) for part in parts)
    return _CLAUSES[clause[0]](text, clause[1:])


def _check_clause(clause: Clause | None) -> None:
    """Raise `Invalid` for a pattern that `matches` does not know."""
    if isinstance(clause, list) and clause[:1] in (["any"], ["all"]):
        for part in clause[1:]:
            _check_clause(part)
    elif isinstance(clause, str) and clause[:1] in _CLAUSES:
        try:
            matches(clause, "")
        except re.error as error:
            raise Invalid(f"the pattern {clause!r} cannot be used: {error}") from None
    elif clause is not None:
        raise Invalid(f"the pattern {clause!r:.80} is in an unknown format")


def book() -> Book:
    """The newest list of prices."""
    return _book(stamp())


def own_prices() -> dict[str, list[Rates]]:
    """The user's own prices, by model; a name with `*` at its end is a prefix."""
    return _own_prices(stamp())


def prices_of(model: str, as_of: str | None = None) -> list[Rates]:
    """The prices of a model, with or without the provider in front: `gpt-5.5`, `openai/gpt-5.5`, `openai:gpt-5.5`.

    `as_of` is a stamp of the lists: whoever asks many times looks once whether they changed.
    """
    return _prices_of(model, stamp() if as_of is None else as_of)


@lru_cache(maxsize=1)
def _book(as_of: str) -> Book:
    ours = _bundled()
    try:
        newer = _read(updated())
        if newer.date <= ours.date:
            return ours
        newer.check()
    except (OSError, Invalid, *BAD_JSON):  # there is no newer list, or it is in an unknown format
        return ours
    return newer


@cache
def _bundled() -> Book:
    """Read once: a process that gave up its rights may not be able to read it again."""
    return _read(bundled())


def _read(path: str) -> Book:
    with open(path, "rb") as file:
        return msgspec.json.decode(file.read(), type=Book)


@lru_cache(maxsize=1)
def _own_prices(as_of: str) -> dict[str, list[Rates]]:
    try:
        with open(own(), "rb") as file:
            listed = msgspec.json.decode(file.read(), type=dict[str, _Own | list[_Own]])
    except OSError as error:
        if not os.path.exists(own()):
            return {}  # there is none, or it lies in a folder that this user may not enter, as that of another user
        raise Invalid(f"{own()} could not be read: {error.strerror}") from None
    except BAD_JSON as error:
        hint = '{"my-model": {"input": 1.5, "output": 6}}, in dollars for a million tokens'
        raise Invalid(f"{own()}: {error}", hint=hint) from None
    return {
        name.lower(): [price.rates() for price in (prices if isinstance(prices, list) else [prices])]
        for name, prices in listed.items()
    }


@lru_cache(maxsize=256)
def _prices_of(model: str, as_of: str) -> list[Rates]:
    model = model.removeprefix("litellm/")
    if not model:
        return []
    mine = _own_prices(as_of)
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
        priced = _book(as_of).find(name, provider)
        if priced is not None:
            return priced.rates()
    return []


def rates_at(prices: list[Rates], at: datetime) -> Rates:
    """The rates at a time: the last ones that apply, or else the first."""
    moment = at.astimezone(UTC)
    return next((rates for rates in reversed(prices) if rates.hold(moment)), prices[0])
