"""What was found, session by session: the newest places of each, how many more there are, and what comes near."""

from __future__ import annotations

from itertools import chain, combinations, islice
from typing import TYPE_CHECKING

from turnlog.catalog.answer import FoundPage, FoundSession
from turnlog.catalog.ask.query import Query, parse
from turnlog.catalog.ask.search import Page, called, hits_of, may_open, opened, wanted_in
from turnlog.catalog.index.cards import time_of
from turnlog.catalog.index.texts import SHIFT
from turnlog.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from turnlog.catalog.answer import Hit
    from turnlog.catalog.index.index import Index
    from turnlog.catalog.index.terms import Term
    from turnlog.catalog.index.wanted import EntryMatch, Wanted

SORTS = ("time", "relevance")
SHOWN = 3
"""The maximum number of places shown of a session."""
_COUNTED, _READ = 5_000, 300
"""The maximum number of places counted; the second if each text has to be read."""
_TRIES = 40
"""The maximum number of combinations of fewer words that are tried."""
_WEIGHTS = {"user": 4, "summary": 3, "assistant": 2, "note": 2}
_TITLED = 8


class _Group:
    """One session with the places in it, the newest first."""

    def __init__(self, number: int) -> None:
        self.number = number
        """Of the index that it is in."""
        self.places: list[EntryMatch] = []
        self.title: Hit | None = None

    @property
    def newest(self) -> int:
        return self.places[0].id if self.places else self.title.cursor if self.title is not None else 0

    @property
    def relevance(self) -> tuple[int, int, int]:
        """Titles count most, then what people said, answers, and what tools did; then who has most, and the newest."""
        best = max((_WEIGHTS.get(place.role, 1) for place in self.places), default=0)
        return max(best, _TITLED * (self.title is not None)), len(self.places), self.newest


def found(
    *indexes: Index,
    query: str,
    workspace: str | None = None,
    limit: int = 10,
    page: int = 1,
    sort: str = "time",
    counted: int = _COUNTED,
    now_ms: int,
) -> FoundPage:
    """A page of sessions. Where nothing has all of the words, what has most of the rarest of them."""
    if limit < 1 or page < 1:
        raise Invalid(f"page {page} of {limit} sessions", hint="at least 1")
    if sort not in SORTS:
        raise Invalid(f"no order by {sort!r:.40}", hint=f"by {' or '.join(SORTS)}")
    asked = parse(query)
    first = _Walk(indexes, asked, workspace, now_ms, counted)
    if first.groups or first.is_cut or asked.others:  # with an OR, fewer words were asked for already
        return first.page(limit, page, sort)
    asked, instead = _corrected(indexes, asked)
    if instead:
        again = _Walk(indexes, asked, workspace, now_ms)
        if again.groups:
            return again.page(limit, page, sort)._replace(instead=tuple(instead.items()))
    for kept, missing in _fewer(indexes, asked):
        again = _Walk(indexes, asked._replace(terms=kept), workspace, now_ms)
        if again.groups:
            return again.page(limit, page, sort)._replace(instead=tuple(instead.items()), missing=missing)
    return FoundPage([], 0, 0, instead=tuple(instead.items()))


class _Walk:
    """The newest places in all indexes, as sessions."""

    def __init__(
        self, indexes: Sequence[Index], asked: Query, workspace: str | None, now_ms: int, counted: int = _COUNTED
    ) -> None:
        self._indexes, self._counted = indexes, counted
        self._wanted = wanted_in(indexes, asked, workspace, now_ms=now_ms)
        self.groups: dict[tuple[int, str], _Group] = {}
        self.is_cut = self._is_more = False
        self._reached: int | None = None
        self._take(self._wanted)
        if not self.groups and not self.is_cut and may_open(asked):
            self._wanted = [one._replace(terms=opened(asked.terms)) for one in self._wanted]
            self._take(self._wanted)
        self.places = sum(len(group.places) for group in self.groups.values())
        for number, (index, one) in enumerate(zip(indexes, self._wanted, strict=True)):
            self._take_titles(number, called(index, asked, one, _READ, None))

    def _take(self, wanted: list[Wanted]) -> None:
        for number, (index, one) in enumerate(zip(self._indexes, wanted, strict=True)):
            is_sure = all(term.kind in index.sure for term in one.every_term)
            read = Page(index, one, self._counted if is_sure else _READ)
            self.is_cut |= read.is_cut
            if read.next is not None:
                self._is_more, self._reached = True, max(self._reached or 0, read.next >> SHIFT)
            for place in read.found:
                key = (number, str(place.session))
                self.groups.setdefault(key, _Group(number)).places.append(place)

    def _take_titles(self, number: int, hits: Sequence[Hit]) -> None:
        if not hits:
            return
        rows = {str(row): name for row, name in self._indexes[number].labels("name").items()}
        named = {rows.get(row): group for (of, row), group in self.groups.items() if of == number}
        for hit in hits:
            group = named.get(hit.card.name)
            if group is None:
                group = self.groups[number, hit.card.name] = _Group(number)
                self.places += 1
            group.title = hit

    def page(self, limit: int, page: int, sort: str) -> FoundPage:
        """This many of them, in that order."""
        order = sorted(
            self.groups.values(),
            key=lambda group: group.relevance if sort == "relevance" else (group.newest,),
            reverse=True,
        )
        groups_shown = order[limit * (page - 1) : limit * page]
        hits: dict[tuple[int, int], Hit] = {}
        for number, index in enumerate(self._indexes):
            places = [place for group in groups_shown if group.number == number for place in group.places[:SHOWN]]
            hits |= {(number, hit.cursor): hit for hit in hits_of(index, places, self._wanted[number])}
        sessions: list[FoundSession] = []
        for group in groups_shown:
            page_hits = [hits[key] for place in group.places[:SHOWN] if (key := (group.number, place.id)) in hits]
            if not page_hits and group.title is not None:
                page_hits.append(group.title)
            if page_hits:
                sessions.append(FoundSession(page_hits[0].card, tuple(page_hits), max(0, len(group.places) - SHOWN)))
        is_last = len(order) <= limit * page
        return FoundPage(
            sessions, self.places, len(order), is_more=self._is_more, reached=time_of(self._reached),
            is_cut=self.is_cut, next=None if is_last else page + 1,
        )  # fmt: skip


# ── what comes near ───────────────────────────────────────────────────────────────────────────────


def _corrected(indexes: Sequence[Index], asked: Query) -> tuple[Query, dict[str, str]]:
    """The query with the nearest word that is somewhere in the place of one that is nowhere."""
    instead: dict[str, str] = {}
    terms: list[Term] = []
    for term in asked.terms:
        if term.kind == "word" and not term.negated and not any(index.frequency(term) for index in indexes):
            near = next(filter(None, (index.nearest(term.text) for index in indexes)), "")
            if near:
                instead[term.text] = near
                term = term._replace(text=near)
        terms.append(term)
    return asked._replace(terms=tuple(terms)), instead


def _fewer(indexes: Sequence[Index], asked: Query) -> Iterator[tuple[tuple[Term, ...], tuple[str, ...]]]:
    """Fewer of the terms: as many as can be, the rarest before others; and which ones are missing."""
    counted = [
        (sum(index.frequency(term) for index in indexes), number)
        for number, term in enumerate(asked.terms)
        if not term.negated
    ]
    rarest = [number for count, number in sorted(counted) if count]
    negated = {number for number, term in enumerate(asked.terms) if term.negated}
    sizes = range(min(len(rarest), len(counted) - 1), 0, -1)
    for chosen in islice(chain.from_iterable(combinations(rarest, size) for size in sizes), _TRIES):
        kept = negated.union(chosen)
        missing = tuple(term.text for number, term in enumerate(asked.terms) if number not in kept)
        yield tuple(term for number, term in enumerate(asked.terms) if number in kept), missing
