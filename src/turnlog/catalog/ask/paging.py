"""Search results by session: the newest matches of each, how many more there are, and near matches."""

from __future__ import annotations

from itertools import chain, combinations, islice
from typing import TYPE_CHECKING

from turnlog.catalog.answer import FoundPage, FoundSession
from turnlog.catalog.ask.hits import hits_of
from turnlog.catalog.ask.lookup import entry_queries
from turnlog.catalog.ask.page import matching
from turnlog.catalog.ask.query import Query, parse
from turnlog.catalog.ask.titles import title_hits
from turnlog.catalog.index.columns import time_of
from turnlog.catalog.index.keys import SHIFT
from turnlog.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from turnlog.catalog.answer import Hit
    from turnlog.catalog.ask.page import Matches
    from turnlog.catalog.ask.titles import TitlePage
    from turnlog.catalog.index.index import Index
    from turnlog.catalog.index.lookup import EntryMatch
    from turnlog.catalog.index.terms import Term

SORTS = ("time", "relevance")
SHOWN = 3
"""The maximum number of places shown of a session."""
_COUNTED, _READ = 5_000, 300
"""The maximum number of places counted; the second if each text has to be read."""
_TRIES = 40
"""The maximum number of combinations of fewer words that are tried."""
_WEIGHTS = {"user": 4, "summary": 3, "assistant": 2, "note": 2}
_TITLED = 8


class _SessionMatches:
    """One session with the places in it, the newest first."""

    def __init__(self, number: int) -> None:
        self.number = number
        """The number of the index that it is in."""
        self.places: list[EntryMatch] = []
        self.title: Hit | None = None

    @property
    def newest(self) -> int:
        return self.places[0].id if self.places else self.title.cursor if self.title is not None else 0

    @property
    def relevance(self) -> tuple[int, int, int]:
        """The sort key: titles first, then prompts, answers, tools; then the number of matches, then the time."""
        best = max((_WEIGHTS.get(place.role, 1) for place in self.places), default=0)
        return max(best, _TITLED * (self.title is not None)), len(self.places), self.newest


def found(
    indexes: Sequence[Index],
    *,
    query: str,
    workspace: str | None = None,
    limit: int = 10,
    page: int = 1,
    sort: str = "time",
    counted: int = _COUNTED,
    now_ms: int,
) -> FoundPage:
    """A page of sessions with matches. If nothing has all of the words, those that have most of the rarest."""
    if limit < 1 or page < 1:
        raise Invalid(f"page {page} of {limit} sessions", hint="at least 1")
    if sort not in SORTS:
        raise Invalid(f"no order by {sort!r:.40}", hint=f"by {' or '.join(SORTS)}")
    parsed = parse(query)

    def matches_of(query: Query) -> _MatchesBySession:
        return _find(indexes, query, workspace, now_ms, counted)

    first = matches_of(parsed)
    if first.by_session or first.is_cut or parsed.others:  # an OR already asks for fewer words
        return first.page(limit, page, sort)
    parsed, instead = _corrected(indexes, parsed)
    if instead:
        groups = matches_of(parsed)
        if groups.by_session:
            return groups.page(limit, page, sort)._replace(instead=tuple(instead.items()))
    for kept, missing in _fewer(indexes, parsed):
        groups = matches_of(parsed._replace(terms=kept))
        if groups.by_session:
            return groups.page(limit, page, sort)._replace(instead=tuple(instead.items()), missing=missing)
    return FoundPage([], 0, 0, instead=tuple(instead.items()))


def _find(
    indexes: Sequence[Index], query: Query, workspace: str | None, now_ms: int, counted: int
) -> _MatchesBySession:
    lookups = entry_queries(indexes, query, workspace, now_ms=now_ms)
    matches = matching(indexes, query, lookups, counted, limit_if_read=_READ)
    groups = _MatchesBySession(indexes, matches)
    for number, (index, lookup) in enumerate(zip(indexes, matches.lookups, strict=True)):
        groups.add_titles(number, title_hits(index, query, lookup, max(_READ, counted)))
    return groups


class _MatchesBySession:
    """The newest matches in all indexes, grouped by session."""

    def __init__(self, indexes: Sequence[Index], matches: Matches) -> None:
        self._indexes, self._lookups = indexes, matches.lookups
        self.by_session: dict[tuple[int, int], _SessionMatches] = {}
        """By the number of the index, and the row of the session in it."""
        self.is_cut = any(page.is_cut for page in matches.pages)
        self._reached = max((page.next >> SHIFT for page in matches.pages if page.next is not None), default=None)
        self._places = sum(len(page.matches) for page in matches.pages)
        for number, page in enumerate(matches.pages):
            for match in page.matches:
                self.by_session.setdefault((number, match.session), _SessionMatches(number)).places.append(match)

    def add_titles(self, number: int, page: TitlePage) -> None:
        """Add sessions of an index whose title matches."""
        if page.next is not None:
            self._reached = max(self._reached or 0, page.next >> SHIFT)
        for session, hit in page.hits:
            group = self.by_session.get((number, session))
            if group is None:
                group = self.by_session[number, session] = _SessionMatches(number)
                self._places += 1
            group.title = hit

    def page(self, limit: int, page: int, sort: str) -> FoundPage:
        """A page of `limit` sessions, in this order."""
        order = sorted(
            self.by_session.values(),
            key=lambda group: group.relevance if sort == "relevance" else (group.newest,),
            reverse=True,
        )
        groups_shown = order[limit * (page - 1) : limit * page]
        hits: dict[tuple[int, int], Hit] = {}
        for number, index in enumerate(self._indexes):
            places = [place for group in groups_shown if group.number == number for place in group.places[:SHOWN]]
            hits |= {(number, hit.cursor): hit for hit in hits_of(index, places, self._lookups[number])}
        sessions: list[FoundSession] = []
        for group in groups_shown:
            page_hits = [hits[key] for place in group.places[:SHOWN] if (key := (group.number, place.id)) in hits]
            if not page_hits and group.title is not None:
                page_hits.append(group.title)
            if page_hits:
                sessions.append(FoundSession(page_hits[0].card, tuple(page_hits), max(0, len(group.places) - SHOWN)))
        is_last = len(order) <= limit * page
        return FoundPage(
            sessions, self._places, len(order), is_more=self._reached is not None, reached=time_of(self._reached),
            is_cut=self.is_cut, next=None if is_last else page + 1,
        )  # fmt: skip


# ── what comes near ───────────────────────────────────────────────────────────────────────────────


def _corrected(indexes: Sequence[Index], query: Query) -> tuple[Query, dict[str, str]]:
    """The query with each word that occurs nowhere replaced by the nearest one that does."""
    instead: dict[str, str] = {}
    terms: list[Term] = []
    for term in query.terms:
        if term.kind == "word" and not term.negated and not any(index.engine.frequency(term) for index in indexes):
            near = next(filter(None, (index.engine.nearest(term.text) for index in indexes)), "")
            if near:
                instead[term.text] = near
                term = term._replace(text=near)
        terms.append(term)
    return query._replace(terms=tuple(terms)), instead


def _fewer(indexes: Sequence[Index], query: Query) -> Iterator[tuple[tuple[Term, ...], tuple[str, ...]]]:
    """Subsets of the terms, largest first and with the rarest terms first, each with the missing words."""
    counted = [
        (sum(index.engine.frequency(term) for index in indexes), number)
        for number, term in enumerate(query.terms)
        if not term.negated
    ]
    rarest = [number for count, number in sorted(counted) if count]
    negated = {number for number, term in enumerate(query.terms) if term.negated}
    sizes = range(min(len(rarest), len(counted) - 1), 0, -1)
    for chosen in islice(chain.from_iterable(combinations(rarest, size) for size in sizes), _TRIES):
        kept = negated.union(chosen)
        missing = tuple(term.text for number, term in enumerate(query.terms) if number not in kept)
        yield tuple(term for number, term in enumerate(query.terms) if number in kept), missing
