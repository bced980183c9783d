"""Search for a sentence: first the places with all of its words, then those with most of the rarest words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from math import log
from typing import TYPE_CHECKING, NamedTuple

from turnlog.catalog.answer import RecalledPage, RecalledPlace
from turnlog.catalog.ask.hits import hits_of
from turnlog.catalog.ask.listing import now_ms
from turnlog.catalog.ask.lookup import entry_queries
from turnlog.catalog.ask.page import matching, read_page
from turnlog.catalog.ask.query import Query, parse
from turnlog.catalog.ask.titles import title_hits
from turnlog.catalog.index.terms import Needle, Term
from turnlog.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnlog.catalog.answer import Hit
    from turnlog.catalog.ask.page import Matches
    from turnlog.catalog.index.index import Index
    from turnlog.catalog.index.lookup import EntryMatch, EntryQuery

_COUNTED, _READ = 1_000, 200
"""The maximum number of places counted that have all of the words; the second if each text has to be read."""
_LOOKED_AT = 1_500
"""How many of the newest places of a word are considered for partial matches."""
_RAREST = 8
"""How many of the rarest words of a sentence are searched."""
_LEAST = 4
"""Words up to this length keep their ending."""
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ations?|ings?|ions?|ies|ied|ers?|ed|es|ly|s|e|y)$")
_WEIGHTS = {"user": 1.3, "assistant": 1.1, "summary": 1.1}
"""What people and models said counts more than what tools did."""
_STOP = frozenset([
    "a", "about", "after", "again", "all", "already", "also", "am", "an", "and", "any", "anything", "are", "as",
    "at", "be", "because", "been", "before", "being", "but", "by", "can", "could", "did", "do", "does", "doing",
    "done", "earlier", "ever", "find", "for", "from", "get", "got", "had", "has", "have", "having", "he", "her",
    "here", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "know", "last", "like",
    "made", "make", "me", "more", "most", "my", "no", "not", "now", "of", "off", "on", "once", "one", "only",
    "or", "other", "our", "out", "over", "past", "please", "previously", "same", "session", "sessions", "she",
    "should", "so", "some", "something", "tell", "than", "that", "the", "their", "them", "then", "there", "these",
    "they", "thing", "things", "this", "those", "to", "too", "up", "us", "use", "used", "was", "way", "we",
    "were", "what", "when", "where", "which", "while", "who", "whom", "why", "will", "with", "work", "worked",
    "would", "you", "your",
])  # fmt: skip
"""Words that occur in any question."""

Skips = Callable[["EntryMatch"], bool]
Clean = Callable[[str], str]


def skip_none(match: EntryMatch) -> bool:
    """Leave out nothing: the default of `skips`."""
    return False


class _Place(NamedTuple):
    """A match: an entry, or a session with a matching title; `words` are those of the question that it has."""

    number: int
    """The number of the index."""
    row: int
    """The row of the session in that index."""
    match: EntryMatch | None
    hit: Hit | None = None
    words: tuple[str, ...] = ()
    is_near: bool = False

    @property
    def session(self) -> tuple[int, int]:
        """The key of the session."""
        return self.number, self.row


def recall(
    indexes: Sequence[Index],
    query: str | Query,
    *,
    limit: int,
    offset: int = 0,
    skips: Skips = skip_none,
    clean: Clean = str,
) -> RecalledPage:
    """The best place of each session; if there are few sessions, more places of each.

    Places with all of the words come first, newest first; then near matches, by the words that they have
    of the question. `skips` leaves entries out; `clean` is applied to a text before a piece of it is shown.
    """
    if limit < 1 or offset < 0:
        raise Invalid(f"{limit} places from {offset} on", hint="at least 1, from 0 on")
    parsed = parse(query)
    lookups = entry_queries(indexes, parsed, None, now_ms=now_ms())
    matches = matching(indexes, parsed, lookups, _COUNTED, limit_if_read=_READ, skips=skips)
    order, others = _one_of_each(_with_all_words(indexes, parsed, matches))
    is_sentence = not parsed.others and len([term for term in parsed.terms if not term.negated]) > 1
    if len(order) < offset + limit and is_sentence:
        order += _Near(indexes, matches.lookups, skips).places(parsed, {place.session for place in order})
    if len(order) < offset + limit:
        order += others
    page = order[offset : offset + limit]
    places = [place for place in (_recalled(indexes, matches.lookups, one, clean) for one in page) if place is not None]
    return RecalledPage(
        places,
        left=max(0, len(order) - offset - limit),
        is_more=any(page.next is not None for page in matches.pages) and len(order) > offset + limit,
        is_cut=any(page.is_cut for page in matches.pages),
    )


def _with_all_words(indexes: Sequence[Index], query: Query, matches: Matches) -> list[_Place]:
    """The newest places that have all of the words, newest first; of sessions without any, a title that has them."""
    places = [
        (match.id, _Place(number, match.session, match))
        for number, page in enumerate(matches.pages)
        for match in page.matches
    ]
    sessions = {place.session for _, place in places}
    for number, (index, lookup) in enumerate(zip(indexes, matches.lookups, strict=True)):
        for session, hit in title_hits(index, query, lookup, _READ).hits:
            if (number, session) not in sessions:
                places.append((hit.cursor, _Place(number, session, None, hit)))
    places.sort(key=lambda place: place[0], reverse=True)
    return [place for _, place in places]


def _one_of_each(places: list[_Place]) -> tuple[list[_Place], list[_Place]]:
    """The first place of each session, and the others."""
    first: dict[tuple[int, int], _Place] = {}
    others = [place for place in places if first.setdefault(place.session, place) is not place]
    return list(first.values()), others


def _recalled(indexes: Sequence[Index], lookups: list[EntryQuery], place: _Place, clean: Clean) -> RecalledPlace | None:
    lookup = lookups[place.number]
    if place.hit is not None:
        from turnlog.catalog.ask.snippet import snippet

        needles = [Needle(term) for term in lookup.every_term if not term.negated]
        text, marks = snippet(clean(place.hit.card.title or place.hit.card.id), needles)
        return RecalledPlace(place.hit._replace(snippet=text, marks=marks), place.words, place.is_near)
    assert place.match is not None
    if place.is_near:
        lookup = lookup._replace(terms=tuple(_near_term(word) for word in place.words))
    hits = hits_of(indexes[place.number], [place.match], lookup, clean)
    return next((RecalledPlace(hit, place.words, place.is_near) for hit in hits), None)


class _Near:
    """Places with most of the rarest words, ranked by the words of the session and of its best place."""

    def __init__(self, indexes: Sequence[Index], lookups: list[EntryQuery], skips: Skips) -> None:
        self._indexes, self._lookups, self._skips = indexes, lookups, skips

    def places(self, query: Query, sessions_before: set[tuple[int, int]]) -> list[_Place]:
        """The best place of each session that is not in `sessions_before`, best session first."""
        words = self._rarest(query)
        best: dict[tuple[int, int], dict[int, tuple[EntryMatch, list[str]]]] = {}
        for word, _ in words:
            for number, match in self._having(query, word):
                key = (number, match.session)
                if key not in sessions_before and not self._skips(match):
                    best.setdefault(key, {}).setdefault(match.id, (match, []))[1].append(word)
        weights = dict(words)
        ranked: list[tuple[float, int, _Place]] = []
        for key, matches in best.items():
            scored = [
                (sum(weights[word] for word in here) * _WEIGHTS.get(match.role, 1.0), match.id, match, here)
                for match, here in matches.values()
            ]
            top, id, match, here = max(scored, key=lambda one: one[:2])
            session = sum(weights[word] for word in {word for _, here in matches.values() for word in here})
            ranked.append((session + top, id, _Place(*key, match, words=tuple(here), is_near=True)))
        ranked.sort(key=lambda one: one[:2], reverse=True)
        least = ranked[0][0] / 4 if ranked else 0.0  # a place that has only common words is no answer
        return [place for score, _, place in ranked if score >= least]

    def _rarest(self, query: Query) -> list[tuple[str, float]]:
        """The rarest words of the query, each with its weight."""
        texts = [term.text.lower() for term in query.terms if not term.negated]
        words = dict.fromkeys(word for text in texts for word in re.findall(r"[^\W_]+", text) if word not in _STOP)
        counts = {
            word: sum(index.engine.frequency(_near_term(word)) for index in self._indexes)
            for word in words
            if len(word) > 1
        }
        rarest = sorted((count, word) for word, count in counts.items() if count)[:_RAREST]
        most = max((count for count, _ in rarest), default=1) + 1
        return [(word, 1.0 + log(most / count)) for count, word in rarest]

    def _having(self, query: Query, word: str) -> Iterator[tuple[int, EntryMatch]]:
        term = _near_term(word)
        negated = tuple(one for one in query.terms if one.negated)
        for number, (index, lookup) in enumerate(zip(self._indexes, self._lookups, strict=True)):
            page = read_page(index, lookup._replace(terms=(term, *negated)), _LOOKED_AT)
            yield from ((number, match._replace(text=None)) for match in page.matches)


def _near_term(word: str) -> Term:
    """A term for a word with any ending: `migrating` is near `migration`."""
    stem = _ENDING.sub("", word) if len(word) > _LEAST and word.isascii() else word
    return Term("prefix", stem) if stem != word and len(stem) >= _LEAST else Term("word", word)
