"""What requests cost, from what the catalog remembers of prices: to load them all takes longer than most answers."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, NamedTuple, cast

import msgspec

from turnlog.catalog.index.notes import note, noted
from turnlog.catalog.values import COUNTS, PRICES
from turnlog.log.usage import Usage
from turnlog.machine.pricelist import stamp
from turnlog.pricing import Tariff, Terms, terms_of

if TYPE_CHECKING:
    from decimal import Decimal

    from turnlog.catalog.index.engine import Engine

KEY = "prices"
"""Under this they are noted."""
_PICOS = 1_000_000_000_000
NOTHING = Usage()


class Paid(NamedTuple):
    """A request, and what it used."""

    request: str | None
    model: str
    usage: Usage
    is_total: bool
    """Whether it may be several requests."""
    why: str | None = None


class _Known(msgspec.Struct):
    """The prices as of one version of them."""

    stamp: str
    terms: dict[str, list[Terms]]


class Prices:
    """Of this run: what is remembered, and what had to be looked up."""

    def __init__(self, db: Engine) -> None:
        known_before = noted(db, KEY)
        self._terms: dict[str, list[Terms]] = {}
        self._found: dict[tuple[str, date], Tariff | None] = {}
        """Of this run: those that hold for a whole day, in our unit."""
        self._stamp = stamp()
        self._is_changed = True
        self.is_other = known_before is not None
        """Whether there are other prices than those that were used before."""
        try:
            before = msgspec.json.decode(known_before, type=_Known) if known_before is not None else None
        except (msgspec.DecodeError, msgspec.ValidationError):
            before = None
        if before is not None and before.stamp == self._stamp:
            self._terms, self._is_changed, self.is_other = before.terms, False, False

    @property
    def stamp(self) -> str:
        """Which version of them it is."""
        return self._stamp

    def cost(self, paid: Paid, at: datetime) -> int | None:
        """In millionths of micro-dollars; None if the price is unknown."""
        if paid.usage.cost_micros is not None:
            return paid.usage.cost_micros * 1_000_000
        if paid.usage == NOTHING:
            return 0
        key = paid.model, (at if at.tzinfo is UTC else at.astimezone(UTC)).date()
        if key in self._found:
            tariff = self._found[key]
        else:
            terms = self._terms_of(paid.model, at)
            tariff = None if terms.tariff is None else _in_picos(terms.tariff)
            if terms.hold(at):
                self._found[key] = tariff
        price = None if tariff is None else tariff.price(paid.usage, is_total=paid.is_total)
        return None if price is None else round(price.dollars)

    def _terms_of(self, model: str, at: datetime) -> Terms:
        for terms in self._terms.get(model, ()):
            if terms.hold(at):
                return terms
        price_terms = terms_of(model, at)
        if price_terms.hold(at):
            self._terms.setdefault(model, []).append(price_terms)
            self._is_changed = True
        return price_terms

    def learn(self, known: bytes) -> None:
        """What somebody else had to look up meanwhile."""
        other = msgspec.json.decode(known, type=_Known)
        if other.stamp == self._stamp:
            for model, terms in other.terms.items():
                new = [one for one in terms if one not in self._terms.get(model, ())]
                self._terms.setdefault(model, []).extend(new)
                self._is_changed = self._is_changed or bool(new)

    def remember(self, db: Engine) -> None:
        """For the next time."""
        if self._is_changed:
            note(db, KEY, msgspec.json.encode(_Known(self._stamp, self._terms)))
            note(db, PRICES, self._stamp)

    def again(self, db: Engine, *, only_unpriced: bool = False) -> set[int]:
        """Price everything once more that was not reported; gives the sessions where that made a difference."""
        costs: list[tuple[int, int, int]] = []
        spent = db.table("spent")
        which = "cost IS NULL" if only_unpriced else "is_reported = 0"
        computed = f"SELECT session, token, at, model, is_total, cost, {', '.join(COUNTS)} FROM {spent} WHERE {which}"
        for session, token, at, model, is_total, before, *counts in db.rows(computed):
            usage, moment = Usage(**dict(zip(COUNTS, counts, strict=True))), datetime.fromtimestamp(at / 1000, UTC)
            cost = self.cost(Paid(None, model, usage, is_total=bool(is_total)), moment)
            if token & 1:
                # Of those without a request it is not known whether they were one: the lowest price is never too high.
                lowest = self.cost(Paid(None, model, usage, is_total=True), moment)
                cost = lowest if before is None or cost == lowest else before
            if cost is not None and cost != before:
                costs.append((cost, session, token))
        db.run(f"UPDATE {spent} SET cost = {db.mark} WHERE session = {db.mark} AND token = {db.mark}", costs)
        return {session for _, session, _ in costs}


def _in_picos(tariff: Tariff) -> Tariff:
    """The same in millionths of micro-dollars: numbers without a fraction, with which it is quick to count.

    No price per million tokens has more than six decimals: nothing is lost here.
    """
    rates = [None if each is None else [_whole(rate * _PICOS) for rate in each] for each in tariff.rates]
    return Tariff(tariff.starts, tariff.has_input, tariff.has_output, rates)


def _whole(rate: Decimal) -> Decimal:
    return cast("Decimal", int(rate)) if rate == int(rate) else rate
