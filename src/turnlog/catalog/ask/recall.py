"""What somebody asks in a sentence: what has all of the words, and behind it what has most of the rarest of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from math import log
from typing import TYPE_CHECKING, NamedTuple

from turnlog.catalog.answer import RecalledPage, RecalledPlace
from turnlog.catalog.ask.listing import now_ms
from turnlog.catalog.ask.query import Query, parse
from turnlog.catalog.ask.search import Page, called, hits_of, may_open, opened, wanted_in
from turnlog.catalog.index.terms import Needle, Term
from turnlog.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnlog.catalog.answer import Hit
    from turnlog.catalog.index.index import Index
    from turnlog.catalog.index.wanted import EntryMatch, Wanted

_COUNTED, _READ = 1_000, 200
"""The maximum number of places counted that have all of the words; the second if each text has to be read."""
_LOOKED_AT = 1_500
"""How many of the newest places of a word are considered for partial matches."""
_RAREST = 8
"""How many of the rarest words of a sentence are searched."""
_LEAST = 4
"""A word of fewer letters has no ending to be taken off."""
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ations?|ings?|ions?|ies|ied|ers?|ed|es|ly|s|e|y)$")
_WEIGHTS = {"user": 1.3, "assistant": 1.1, "summary": 1.1}
"""What people said, and answers, tell more of a session than what its tools did."""
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
"""Words that a question has, whatever it is about."""

Skips = Callable[["EntryMatch"], bool]
Clean = Callable[[str], str]


def nothing(match: EntryMatch) -> bool:
    """Nothing is left out."""
    return False


class _Place(NamedTuple):
    """A place in an index: an entry, or a session that is called so; and what it has of the question."""

    number: int
    """Of the index."""
    match: EntryMatch | None
    hit: Hit | None = None
    words: tuple[str, ...] = ()
    is_near: bool = False

    @property
    def session(self) -> tuple[int, str]:
        """Which session that is."""
        if self.match is not None:
            return self.number, str(self.match.session)
        return self.number, self.hit.card.name if self.hit is not None else ""


def recall(
    indexes: Sequence[Index],
    query: str,
    *,
    limit: int,
    offset: int = 0,
    skips: Skips = nothing,
    clean: Clean = str,
) -> RecalledPage:
    """The best place of each session, and where there are few sessions, more places of each.

    Those that have all of the words come first, the newest of them before others; then what comes near, by what it has
    of the question. `skips` leaves entries out; `clean` is what is done to a text before a piece of it is shown.
    """
    if limit < 1 or offset < 0:
        raise Invalid(f"{limit} places from {offset} on", hint="at least 1, from 0 on")
    asked = parse(query)
    wanted = wanted_in(indexes, asked, None, now_ms=now_ms())
    walk = _Walk(indexes, wanted, skips)
    order = walk.all_words(asked)
    is_sentence = not asked.others and len([term for term in asked.terms if not term.negated]) > 1
    if len(order) < offset + limit and is_sentence:
        order += _Near(indexes, wanted, skips).places(asked, {place.session for place in order})
    if len(order) < offset + limit:
        order += walk.more_of_each()
    page = order[offset : offset + limit]
    places = [place for place in (_shown(indexes, wanted, one, clean) for one in page) if place is not None]
    return RecalledPage(
        places,
        left=max(0, len(order) - offset - limit),
        is_more=walk.is_more and len(order) > offset + limit,
        is_cut=walk.is_cut,
    )


def _shown(indexes: Sequence[Index], wanted: list[Wanted], place: _Place, clean: Clean) -> RecalledPlace | None:
    asked = wanted[place.number]
    if place.hit is not None:
        from turnlog.catalog.ask.snippet import snippet

        needles = [Needle(term) for term in asked.every_term if not term.negated]
        text, marks = snippet(clean(place.hit.card.title or place.hit.card.id), needles)
        return RecalledPlace(place.hit._replace(snippet=text, marks=marks), place.words, place.is_near)
    assert place.match is not None
    if place.is_near:
        asked = asked._replace(terms=tuple(_near_term(word) for word in place.words))
    hits = hits_of(indexes[place.number], [place.match], asked, clean)
    return next((RecalledPlace(hit, place.words, place.is_near) for hit in hits), None)


class _Walk:
    """The newest places that have all of the words."""

    def __init__(self, indexes: Sequence[Index], wanted: list[Wanted], skips: Skips) -> None:
        self._indexes, self._wanted, self._skips = indexes, wanted, skips
        self.is_more = self.is_cut = False
        self._others: list[_Place] = []

    def all_words(self, asked: Query) -> list[_Place]:
        """One place of each session, the newest first."""
        matches = self._entries(self._wanted)
        if not matches and not self.is_cut and may_open(asked):
            self._wanted[:] = [one._replace(terms=opened(asked.terms)) for one in self._wanted]
            matches = self._entries(self._wanted)
        places = [(match.id, _Place(number, match)) for number, match in matches]
        for number, (index, one) in enumerate(zip(self._indexes, self._wanted, strict=True)):
            hits = called(index, asked, one, _READ, None)
            rows = {match.session for of, match in matches if of == number} if hits else set[int]()
            names = {card.name for card in index.cards_by_row(rows).values()} if rows else set[str]()
            places += [(hit.cursor, _Place(number, None, hit)) for hit in hits if hit.card.name not in names]
        places.sort(key=lambda one: one[0], reverse=True)
        first: dict[tuple[int, str], _Place] = {}
        for _, place in places:
            if first.setdefault(place.session, place) is not place:
                self._others.append(place)
        return list(first.values())

    def more_of_each(self) -> list[_Place]:
        """The places that were left for later."""
        return self._others

    def _entries(self, wanted: list[Wanted]) -> list[tuple[int, EntryMatch]]:
        matches: list[tuple[int, EntryMatch]] = []
        for number, (index, one) in enumerate(zip(self._indexes, wanted, strict=True)):
            is_sure = all(term.kind in index.sure for term in one.every_term)
            page = Page(index, one, _COUNTED if is_sure else _READ)
            self.is_cut |= page.is_cut
            self.is_more |= page.next is not None
            matches += [(number, match) for match in page.found if not self._skips(match)]
        return matches


class _Near:
    """What has most of the rarest words: counted in a session, and in the one place of it that has most of them."""

    def __init__(self, indexes: Sequence[Index], wanted: list[Wanted], skips: Skips) -> None:
        self._indexes, self._wanted, self._skips = indexes, wanted, skips

    def places(self, asked: Query, known: set[tuple[int, str]]) -> list[_Place]:
        """The best place of each session that is not known already, the best session first."""
        words = self._rarest(asked)
        best: dict[tuple[int, int], dict[int, tuple[EntryMatch, list[str]]]] = {}
        for word, _ in words:
            for number, match in self._having(asked, word):
                key = (number, match.session)
                if (number, str(match.session)) not in known and not self._skips(match):
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
            ranked.append((session + top, id, _Place(key[0], match, words=tuple(here), is_near=True)))
        ranked.sort(key=lambda one: one[:2], reverse=True)
        least = ranked[0][0] / 4 if ranked else 0.0  # what has only a word that is everywhere is no answer
        return [place for score, _, place in ranked if score >= least]

    def _rarest(self, asked: Query) -> list[tuple[str, float]]:
        """The words that tell most, and how much."""
        texts = [term.text.lower() for term in asked.terms if not term.negated]
        words = dict.fromkeys(word for text in texts for word in re.findall(r"[^\W_]+", text) if word not in _STOP)
        counts = {
            word: sum(index.frequency(_near_term(word)) for index in self._indexes) for word in words if len(word) > 1
        }
        there = sorted((count, word) for word, count in counts.items() if count)[:_RAREST]
        most = max((count for count, _ in there), default=1) + 1
        return [(word, 1.0 + log(most / count)) for count, word in there]

    def _having(self, asked: Query, word: str) -> Iterator[tuple[int, EntryMatch]]:
        term = _near_term(word)
        negated = tuple(one for one in asked.terms if one.negated)
        for number, (index, one) in enumerate(zip(self._indexes, self._wanted, strict=True)):
            for match in index.entries(one._replace(terms=(term, *negated)), limit=_LOOKED_AT):
                yield number, match


def _near_term(word: str) -> Term:
    """The word without its ending, and whatever ending it has there: `migrating` is near `migration`."""
    stem = _ENDING.sub("", word) if len(word) > _LEAST and word.isascii() else word
    return Term("prefix", stem) if stem != word and len(stem) >= _LEAST else Term("word", word)
