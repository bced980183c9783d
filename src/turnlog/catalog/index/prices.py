"""What requests cost, from prices that the catalog caches: loading all prices takes longer than most answers."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, cast

import msgspec

from turnlog.catalog.index.columns import LARGEST
from turnlog.catalog.index.keys import OF_ENTRY
from turnlog.catalog.index.notes import PRICES, PRICES_OF, get_note, set_note
from turnlog.catalog.values import COUNTS
from turnlog.log.startup import NamedTuple
from turnlog.log.usage import Usage
from turnlog.machine.pricelist import stamp
from turnlog.pricing import Tariff, Terms, terms_of

if TYPE_CHECKING:
    from decimal import Decimal

    from turnlog.catalog.index.engine import Engine

_PICOS = 1_000_000_000_000
NOTHING = Usage()


class Paid(NamedTuple):
    """A request and its usage."""

    request: str | None
    model: str
    usage: Usage
    is_of_several: bool
    """Whether the usage may be that of several requests: then the lowest price holds."""
    why: str | None = None


class _CachedPrices(msgspec.Struct):
    """The cached prices, and their version."""

    stamp: str
    terms: dict[str, list[Terms]]


class Prices:
    """The cached prices, and those that this run had to look up."""

    def __init__(self, db: Engine) -> None:
        encoded = get_note(db, PRICES)
        self._terms: dict[str, list[Terms]] = {}
        self._tariffs: dict[tuple[str, date], Tariff | None] = {}
        """The tariffs that hold for a whole day, in millionths of micro-dollars."""
        self._stamp = stamp()
        self._is_unsaved = True
        self.is_outdated = encoded is not None
        """Whether the sums were made with other prices than those of now."""
        try:
            cached = msgspec.json.decode(encoded, type=_CachedPrices) if encoded is not None else None
        except (msgspec.DecodeError, msgspec.ValidationError):
            cached = None
        if cached is not None and cached.stamp == self._stamp:
            self._terms, self._is_unsaved, self.is_outdated = cached.terms, False, False

    @property
    def stamp(self) -> str:
        """The version of the prices."""
        return self._stamp

    def cost(self, paid: Paid, at: datetime) -> int | None:
        """The cost in millionths of micro-dollars; None if the price is unknown."""
        if paid.usage.cost_micros is not None:
            return min(paid.usage.cost_micros * 1_000_000, LARGEST)
        if paid.usage == NOTHING:
            return 0
        key = paid.model, (at if at.tzinfo is UTC else at.astimezone(UTC)).date()
        if key in self._tariffs:
            tariff = self._tariffs[key]
        else:
            terms = self._terms_of(paid.model, at)
            tariff = None if terms.tariff is None else _in_picos(terms.tariff)
            if terms.hold(at):
                self._tariffs[key] = tariff
        price = None if tariff is None else tariff.price(paid.usage, is_total=paid.is_of_several)
        return None if price is None else min(round(price.dollars), LARGEST)

    def _terms_of(self, model: str, at: datetime) -> Terms:
        for terms in self._terms.get(model, ()):
            if terms.hold(at):
                return terms
        price_terms = terms_of(model, at)
        if price_terms.hold(at):
            self._terms.setdefault(model, []).append(price_terms)
            self._is_unsaved = True
        return price_terms

    def add(self, encoded: bytes) -> None:
        """Add prices that another process looked up."""
        other = msgspec.json.decode(encoded, type=_CachedPrices)
        if other.stamp == self._stamp:
            for model, terms in other.terms.items():
                new = [one for one in terms if one not in self._terms.get(model, ())]
                self._terms.setdefault(model, []).extend(new)
                self._is_unsaved = self._is_unsaved or bool(new)

    def remember(self, db: Engine) -> None:
        """Store the prices for the next run. Inside a transaction."""
        if self._is_unsaved:
            set_note(db, PRICES, msgspec.json.encode(_CachedPrices(self._stamp, self._terms)))
            set_note(db, PRICES_OF, self._stamp)

    def recompute(self, db: Engine, *, only_unpriced: bool = False) -> set[int]:
        """Recompute every cost that was not reported. Returns the sessions in which one changed."""
        costs: list[tuple[int, int, int]] = []
        spent = db.table("spent")
        which = "cost IS NULL" if only_unpriced else "NOT is_reported"
        computed = f"SELECT session, token, at, model, is_total, cost, {', '.join(COUNTS)} FROM {spent} WHERE {which}"
        for session, token, at, model, is_total, before, *counts in db.rows(computed):
            usage, moment = Usage(**dict(zip(COUNTS, counts, strict=True))), datetime.fromtimestamp(at / 1000, UTC)
            cost = self.cost(Paid(None, model, usage, is_of_several=bool(is_total)), moment)
            if token & OF_ENTRY:
                # Usage without a request id may be of several requests: the lowest price is never too high.
                lowest = self.cost(Paid(None, model, usage, is_of_several=True), moment)
                cost = lowest if before is None or cost == lowest else before
            if cost is not None and cost != before:
                costs.append((cost, session, token))
        db.run(
            f"UPDATE {spent} SET cost = {db.placeholder} WHERE session = {db.placeholder} AND token = {db.placeholder}",
            costs,
        )
        return {session for _, session, _ in costs}


def _in_picos(tariff: Tariff) -> Tariff:
    """The tariff in millionths of micro-dollars: integers, which are quick to add.

    No price per million tokens has more than six decimals: nothing is lost here.
    """
    rates = [None if each is None else [_whole(rate * _PICOS) for rate in each] for each in tariff.rates]
    return Tariff(tariff.starts, tariff.has_input, tariff.has_output, rates)


def _whole(rate: Decimal) -> Decimal:
    # An integer in the place of a decimal, which `Tariff` only multiplies and adds: that is many times faster.
    return cast("Decimal", int(rate)) if rate == int(rate) else rate
