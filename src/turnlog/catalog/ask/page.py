"""Entries that match, in pages: a lookup in an index, and a look into the texts where the index is not sure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from typing import TYPE_CHECKING, NamedTuple

from turnlog.catalog.index.terms import Needle, Term, fold, may_begin_inside

if TYPE_CHECKING:
    from turnlog.catalog.ask.query import Query
    from turnlog.catalog.index.index import Index
    from turnlog.catalog.index.wanted import EntryMatch, Wanted


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
    wanted: list[Wanted]


def matching(
    indexes: Sequence[Index],
    query: Query,
    wanted: list[Wanted],
    limit: int,
    *,
    limit_if_read: int | None = None,
    before: int | None = None,
    skips: Callable[[EntryMatch], bool] | None = None,
) -> Matches:
    """A page of each index. Code that is nowhere may begin inside a word.

    `limit_if_read` is the limit where each text has to be read; `skips` leaves entries out.
    """

    def read(wanted: list[Wanted]) -> Matches:
        pages: list[Page] = []
        for index, one in zip(indexes, wanted, strict=True):
            is_sure = limit_if_read is None or all(term.kind in index.sure for term in one.every_term)
            page = read_page(index, one, limit if is_sure else limit_if_read, before)
            if skips is not None:
                page = page._replace(matches=[match for match in page.matches if not skips(match)])
            pages.append(page)
        return Matches(pages, wanted)

    matches = read(wanted)
    if not _may_begin_anywhere(query) or not _is_nothing(matches.pages):
        return matches
    if before is not None and any(page.matches for page in _first_matches(indexes, wanted)):
        return matches
    return read(_anywhere(query, wanted))


def found_where(indexes: Sequence[Index], query: Query, wanted: list[Wanted]) -> list[Wanted]:
    """The lookups, with which code that is nowhere may begin inside a word."""
    if _may_begin_anywhere(query) and _is_nothing(_first_matches(indexes, wanted)):
        return _anywhere(query, wanted)
    return wanted


def _first_matches(indexes: Sequence[Index], wanted: list[Wanted]) -> list[Page]:
    return [read_page(index, one, 1) for index, one in zip(indexes, wanted, strict=True)]


def _is_nothing(pages: list[Page]) -> bool:
    return not any(page.matches or page.is_cut for page in pages)


def _may_begin_anywhere(query: Query) -> bool:
    """Whether code in a query may begin inside a word; with an `OR`, `found_where` decides that for each side."""
    return not query.others and any(map(may_begin_inside, query.terms))


def _anywhere(query: Query, wanted: list[Wanted]) -> list[Wanted]:
    """Code that never occurs at the beginning of a word may have been copied from the middle of one."""
    return [one._replace(terms=begin_anywhere(query.terms)) for one in wanted]


def begin_anywhere(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """The terms, with code that may begin inside a word."""
    return tuple(term._replace(kind="part") if may_begin_inside(term) else term for term in terms)


def read_page(
    index: Index,
    wanted: Wanted,
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
    for match in reading.matches(wanted, before):
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
        self._index = index
        self._limit = limit
        self._is_for_sessions = is_for_sessions
        self._left = index.patience
        self._seen: set[int] = set()

    def matches(self, wanted: Wanted, before: int | None) -> Iterator[EntryMatch]:
        """The entries of all sides of a lookup."""
        if not wanted.others:
            yield from self._of_side(wanted, before)
            return
        ways = (self._of_side(one, before) for one in (wanted, *wanted.others))
        last = None
        for candidate in merge(*ways, key=lambda match: -match.id):
            if self.is_cut and candidate.id < (self.next or 0):
                return  # one of them was not read to the end
            if candidate.id != last:
                yield candidate
            last = candidate.id

    def _of_side(self, wanted: Wanted, before: int | None) -> Iterator[EntryMatch]:
        needles = [Needle(term) for term in wanted.terms if term.kind not in self._index.sure]
        if not needles:
            limit = None if self._limit is None else self._limit + 1
            yield from self._index.entries(wanted, before=before, limit=limit)
            return
        present = [needle for needle in needles if not needle.term.negated]
        absent = [needle for needle in needles if needle.term.negated]
        last = before
        for match in self._index.entries(wanted, before=before, with_text=True):
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
