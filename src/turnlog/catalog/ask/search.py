"""Full-text search in all sessions, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.catalog.answer import Hits
from turnlog.catalog.ask.hits import hits_of
from turnlog.catalog.ask.lookup import entry_queries
from turnlog.catalog.ask.page import Page, matching
from turnlog.catalog.ask.query import parse
from turnlog.catalog.ask.titles import TitlePage, title_hits
from turnlog.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnlog.catalog.answer import Hit
    from turnlog.catalog.index.index import Index
    from turnlog.catalog.index.lookup import EntryQuery


def search(
    indexes: Sequence[Index],
    *,
    query: str,
    workspace: str | None = None,
    limit: int = 20,
    before: int | None = None,
    now_ms: int,
) -> Hits:
    """A page of hits; `before` is the `next` of the previous page."""
    if limit < 1:
        raise Invalid(f"a page of {limit} hits", hint="at least 1")
    parsed = parse(query)
    lookups = entry_queries(indexes, parsed, workspace, now_ms=now_ms)
    matches = matching(indexes, parsed, lookups, limit, before=before)
    pages = [_hits_of_page(*each) for each in zip(indexes, matches.pages, matches.lookups, strict=True)]
    titles = [title_hits(index, parsed, lookup, limit, before) for index, lookup in zip(indexes, lookups, strict=True)]
    pages += [_hits_of_titles(page) for page in titles if page.hits]
    return pages[0] if len(pages) == 1 else _merge_pages(pages, limit)


def _hits_of_page(index: Index, page: Page, lookup: EntryQuery) -> Hits:
    hits = Hits(hits_of(index, page.matches, lookup))
    hits.next, hits.is_cut = page.next, page.is_cut
    return hits


def _hits_of_titles(page: TitlePage) -> Hits:
    hits = Hits(one.hit for one in page.hits)
    hits.next = page.next
    return hits


def _merge_pages(pages: list[Hits], limit: int) -> Hits:
    """Merge the pages of several lookups into one."""
    # Each page has all hits from its `next` on. What is older in another page waits, or hits between would be lost.
    reached = max((page.next for page in pages if page.next is not None), default=None)
    matching = [hit for page in pages for hit in page if reached is None or hit.cursor >= reached]
    matching.sort(key=_newest, reverse=True)
    with_places = {hit.card.name for hit in matching[:limit] if hit.entry}
    matching = [hit for hit in matching if hit.entry or hit.card.name not in with_places]  # one hit a session
    end = limit
    while end < len(matching) and matching[end].cursor == matching[end - 1].cursor:
        end += 1  # hits of one cursor stay on one page, or the second would be lost between two pages
    hits = Hits(matching[:end])
    if end < len(matching):
        hits.next = matching[end - 1].cursor
        return hits
    hits.next = reached
    hits.is_cut = any(page.is_cut and page.next == reached for page in pages)
    return hits


def _newest(hit: Hit) -> int:
    return hit.cursor
