"""What a query means: a condition on sessions, and a lookup of entries in each index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from turnlog.catalog.ask.filters import active, is_of_entries, of_entries, of_sessions, span_of, title_condition
from turnlog.catalog.ask.page import inside_words, inside_words_if_needed, read_page
from turnlog.catalog.index.conditions import Condition, either
from turnlog.catalog.index.lookup import EntryQuery, TimeSpan
from turnlog.errors import Invalid

if TYPE_CHECKING:
    from datetime import tzinfo

    from turnlog.catalog.ask.query import Query
    from turnlog.catalog.index.index import Index


def session_condition(
    index: Index, query: Query, *, now_ms: int, zone: tzinfo | None = None, without: tuple[str, ...] = ()
) -> Condition:
    """The sessions with at least one entry that matches; without words, the sessions that match."""
    sides = [_condition_of_side(index, side, now_ms, zone, without) for side in query.sides]
    return either(*sides) if all(side.op for side in sides) else Condition()


def _condition_of_side(
    index: Index, query: Query, now_ms: int, zone: tzinfo | None, without: tuple[str, ...]
) -> Condition:
    span = span_of(query, now_ms=now_ms, zone=zone)
    condition = of_sessions(query, index, without=without)
    never = of_entries(query, negated=True)
    if never.op:
        condition = condition.but_not(Condition("has", value=EntryQuery(entries=never, span=span)))
    if is_of_entries(query):
        entries = of_entries(query, negated=False)
        having = _having(index, EntryQuery(query.terms, entries=entries, span=span))
        if not entries.op:
            named = title_condition(query)
            having = having.or_(named.and_(active(span)) if "since" not in without else named)
        return condition.and_(having)
    return condition.and_(active(span)) if "since" not in without else condition


def _having(index: Index, lookup: EntryQuery) -> Condition:
    if all(term.kind in index.engine.sure for term in lookup.terms):
        return Condition("has", value=lookup)
    sessions: set[int] = set()
    for terms in dict.fromkeys((lookup.terms, inside_words(lookup.terms))):
        page = read_page(index, lookup._replace(terms=terms), is_for_sessions=True)
        sessions |= {match.session for match in page.matches}
        if page.is_cut:
            words = " ".join(term.text for term in terms)
            raise Invalid(
                f"too much text to look for {words!r:.80} in all of it", hint="add a word, since: or workspace:"
            )
        if sessions:
            break
    return Condition("among", "sessions.id", tuple(sorted(sessions)))


def entry_queries(indexes: Sequence[Index], query: Query, workspace: str | None, *, now_ms: int) -> list[EntryQuery]:
    """The lookup of a query in each index. Around an `OR`, code without matches may begin inside a word."""
    sides: list[list[EntryQuery]] = []
    for side in query.sides:
        span = span_of(side, now_ms=now_ms)
        lookups = [_entry_query(index, side, workspace, span) for index in indexes]
        sides.append(inside_words_if_needed(indexes, side, lookups) if query.others else lookups)
    return [first._replace(others=tuple(others)) for first, *others in zip(*sides, strict=True)]


def _entry_query(index: Index, query: Query, workspace: str | None, span: TimeSpan) -> EntryQuery:
    """The lookup of a query in one index."""
    sessions = of_sessions(query, index)
    if workspace is not None:
        sessions = sessions.and_(Condition("=", "sessions.workspace", workspace))
    return EntryQuery(query.terms, sessions, of_entries(query), span)
