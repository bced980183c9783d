"""Entries that match, in pages: a lookup in an index, and a look into the texts where the index is not sure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from typing import TYPE_CHECKING

from turnlog.catalog.index.terms import Needle, Term, fold, may_begin_inside
from turnlog.log.startup import NamedTuple

if TYPE_CHECKING:
    from turnlog.catalog.ask.query import Query
    from turnlog.catalog.index.index import Index
    from turnlog.catalog.index.lookup import EntryMatch, EntryQuery


class Page(NamedTuple):
    """Entries of one index that match, the newest first."""

    matches: list[EntryMatch]
    next: int | None
    """The `before` of the next page; None if there is none."""
    is_cut: bool
    """Whether there was too much text to read."""


class Matches(NamedTuple):
    """A page of each index, and the lookups with which they were found."""

    pages: list[Page]
    lookups: list[EntryQuery]


def matching(
    indexes: Sequence[Index],
    query: Query,
    lookups: list[EntryQuery],
    limit: int,
    *,
    limit_if_read: int | None = None,
    before: int | None = None,
    skips: Callable[[EntryMatch], bool] | None = None,
) -> Matches:
    """A page of each index. If code matches nowhere at the beginning of a word, it is looked for inside of words.

    `limit_if_read` is the limit where each text has to be read. Entries for which `skips` is true are left out.
    """

    def read(lookups: list[EntryQuery]) -> Matches:
        pages: list[Page] = []
        for index, lookup in zip(indexes, lookups, strict=True):
            is_sure = limit_if_read is None or all(term.kind in index.engine.sure for term in lookup.every_term)
            page = read_page(index, lookup, limit if is_sure else limit_if_read, before)
            if skips is not None:
                page = page._replace(matches=[match for match in page.matches if not skips(match)])
            pages.append(page)
        return Matches(pages, lookups)

    matches = read(lookups)
    if not _may_be_inside_words(query) or not _are_empty(matches.pages):
        return matches
    if before is not None and any(page.matches for page in _first_matches(indexes, lookups)):
        return matches
    return read(_inside_words(query, lookups))


def inside_words_if_needed(indexes: Sequence[Index], query: Query, lookups: list[EntryQuery]) -> list[EntryQuery]:
    """These lookups; if they find nothing, lookups that find code inside of words as well."""
    if _may_be_inside_words(query) and _are_empty(_first_matches(indexes, lookups)):
        return _inside_words(query, lookups)
    return lookups


def _first_matches(indexes: Sequence[Index], lookups: list[EntryQuery]) -> list[Page]:
    return [read_page(index, lookup, 1) for index, lookup in zip(indexes, lookups, strict=True)]


def _are_empty(pages: list[Page]) -> bool:
    return not any(page.matches or page.is_cut for page in pages)


def _may_be_inside_words(query: Query) -> bool:
    """Whether code of a query may be inside of words. `inside_words_if_needed` decides it for each side of an `OR`."""
    return not query.others and any(map(may_begin_inside, query.terms))


def _inside_words(query: Query, lookups: list[EntryQuery]) -> list[EntryQuery]:
    """Code that never occurs at the beginning of a word may have been copied from the middle of one."""
    return [lookup._replace(terms=inside_words(query.terms)) for lookup in lookups]


def inside_words(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """The terms, where those of code are found inside of words as well."""
    return tuple(term._replace(kind="part") if may_begin_inside(term) else term for term in terms)


def read_page(
    index: Index,
    lookup: EntryQuery,
    limit: int | None = None,
    before: int | None = None,
    *,
    is_for_sessions: bool = False,
) -> Page:
    """Read up to `limit` entries that match, and no more text than the index has patience for.

    With `is_for_sessions`, one entry of each session is enough.
    """
    reading = _Reading(index, limit, is_for_sessions=is_for_sessions)
    matches: list[EntryMatch] = []
    for match in reading.matches(lookup, before):
        if limit is not None and len(matches) == limit:
            return Page(matches, matches[-1].id, is_cut=False)
        matches.append(match)
    return Page(matches, reading.next, reading.is_cut)


class _Reading:
    """One page while it is read."""

    def __init__(self, index: Index, limit: int | None, *, is_for_sessions: bool) -> None:
        self.next: int | None = None
        """Where reading ended, if it was cut."""
        self.is_cut = False
        self._engine = index.engine
        self._limit = limit
        self._is_for_sessions = is_for_sessions
        self._left = index.engine.patience
        self._seen: set[int] = set()

    def matches(self, lookup: EntryQuery, before: int | None) -> Iterator[EntryMatch]:
        """The entries of all sides of a lookup."""
        if not lookup.others:
            yield from self._of_side(lookup, before)
            return
        sides = (self._of_side(side, before) for side in (lookup, *lookup.others))
        last = None
        for candidate in merge(*sides, key=lambda match: -match.id):
            if self.is_cut and candidate.id < (self.next or 0):
                return  # one of them was not read to the end
            if candidate.id != last:
                yield candidate
            last = candidate.id

    def _of_side(self, side: EntryQuery, before: int | None) -> Iterator[EntryMatch]:
        needles = [Needle(term) for term in side.terms if term.kind not in self._engine.sure]
        if not needles:
            limit = None if self._limit is None else self._limit + 1
            yield from self._engine.entries(side, before=before, limit=limit)
            return
        present = [needle for needle in needles if not needle.term.negated]
        absent = [needle for needle in needles if needle.term.negated]
        last = before
        for match in self._engine.entries(side, before=before, with_text=True):
            if self._left <= 0:
                self.next, self.is_cut = max(self.next or 0, last or 0) or None, True
                return
            last = match.id
            if self._is_for_sessions and match.session in self._seen:
                continue
            text = fold(match.text or "")
            self._left -= len(text)
            if all(needle.is_in(text) for needle in present) and not any(needle.is_in(text) for needle in absent):
                self._seen.add(match.session)
                yield match
