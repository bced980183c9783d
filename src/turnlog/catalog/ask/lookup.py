"""What a query means: a condition on sessions, and a lookup of entries in each index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from turnlog.catalog.ask.filters import active, is_of_entries, of_entries, of_sessions, span_of, title_condition
from turnlog.catalog.ask.page import begin_anywhere, found_where, read_page
from turnlog.catalog.index.conditions import Condition, either
from turnlog.catalog.index.wanted import TimeSpan, Wanted
from turnlog.errors import Invalid

if TYPE_CHECKING:
    from datetime import tzinfo

    from turnlog.catalog.ask.query import Query
    from turnlog.catalog.index.index import Index


def sessions_meant(
    index: Index, query: Query, *, now_ms: int, zone: tzinfo | None = None, without: tuple[str, ...] = ()
) -> Condition:
    """The sessions with at least one entry that matches; without words, the sessions that match."""
    ways = [_meant(index, way, now_ms, zone, without) for way in query.ways]
    return either(*ways) if all(way.op for way in ways) else Condition()


def _meant(index: Index, query: Query, now_ms: int, zone: tzinfo | None, without: tuple[str, ...]) -> Condition:
    span = span_of(query, now_ms=now_ms, zone=zone)
    condition = of_sessions(query, index, without=without)
    never = of_entries(query, negated=True)
    if never.op:
        condition = condition.but_not(Condition("has", value=Wanted(entries=never, span=span)))
    if is_of_entries(query):
        entries = of_entries(query, negated=False)
        having = _having(index, Wanted(query.terms, entries=entries, span=span))
        if not entries.op:
            named = title_condition(query)
            having = having.or_(named.and_(active(span)) if "since" not in without else named)
        return condition.and_(having)
    return condition.and_(active(span)) if "since" not in without else condition


def _having(index: Index, wanted: Wanted) -> Condition:
    if all(term.kind in index.sure for term in wanted.terms):
        return Condition("has", value=wanted)
    sessions: set[int] = set()
    for terms in dict.fromkeys((wanted.terms, begin_anywhere(wanted.terms))):
        page = read_page(index, wanted._replace(terms=terms), is_for_sessions=True)
        sessions |= {match.session for match in page.matches}
        if page.is_cut:
            words = " ".join(term.text for term in terms)
            raise Invalid(
                f"too much text to look for {words!r:.80} in all of it", hint="add a word, since: or workspace:"
            )
        if sessions:
            break
    return Condition("among", "sessions.id", tuple(sorted(sessions)))


def wanted_in(indexes: Sequence[Index], query: Query, workspace: str | None, *, now_ms: int) -> list[Wanted]:
    """The lookup of a query in each index. Around an `OR`, code without matches may begin inside a word."""
    ways: list[list[Wanted]] = []
    for way in query.ways:
        span = span_of(way, now_ms=now_ms)
        wanted = [_wanted_of(index, way, workspace, span) for index in indexes]
        ways.append(found_where(indexes, way, wanted) if query.others else wanted)
    return [first._replace(others=tuple(others)) for first, *others in zip(*ways, strict=True)]


def _wanted_of(index: Index, query: Query, workspace: str | None, span: TimeSpan) -> Wanted:
    """The lookup of a query in one index."""
    sessions = of_sessions(query, index)
    if workspace is not None:
        sessions = sessions.and_(Condition("=", "sessions.workspace", workspace))
    return Wanted(query.terms, sessions, of_entries(query), span)
