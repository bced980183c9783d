"""Where words were said, in any session, the newest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from heapq import merge
from typing import TYPE_CHECKING

from turnlog.catalog.answer import Hit, Hits
from turnlog.catalog.ask.filters import called_so, is_of_entries, of_entries, of_sessions, span_of
from turnlog.catalog.ask.query import Query, parse
from turnlog.catalog.index.conditions import Condition, either
from turnlog.catalog.index.index import Index
from turnlog.catalog.index.terms import Needle, Term, fold, may_begin_inside
from turnlog.catalog.index.texts import SHIFT
from turnlog.catalog.index.wanted import EntryMatch, TimeSpan, Wanted
from turnlog.catalog.values import Card
from turnlog.errors import Invalid

if TYPE_CHECKING:
    from datetime import tzinfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TITLE = "title"
"""The role of a hit that is no entry: the session is called so."""


def search(
    *indexes: Index,
    query: str,
    workspace: str | None = None,
    limit: int = 20,
    before: int | None = None,
    now_ms: int,
) -> Hits:
    """A page of hits; `before` is the `next` of the page before."""
    if limit < 1:
        raise Invalid(f"a page of {limit} hits", hint="at least 1")
    asked = parse(query)
    wanted = wanted_in(indexes, asked, workspace, now_ms=now_ms)
    pages = _pages(indexes, wanted, limit, before)
    if may_open(asked) and not any(page.found or page.is_cut for page in pages):
        # Code that is nowhere from the beginning of a word on may have been cut out of one.
        is_nowhere = before is None or not any(page.found for page in _pages(indexes, wanted, 1, None))
        if is_nowhere:
            inside = [one._replace(terms=opened(asked.terms)) for one in wanted]
            pages = _pages(indexes, inside, limit, before)
    parts = [page.hits() for page in pages]
    titled = [called(index, asked, one, limit, before) for index, one in zip(indexes, wanted, strict=True)]
    parts += filter(None, titled)
    return parts[0] if len(parts) == 1 else _together(parts, limit)


def called(index: Index, asked: Query, wanted: Wanted, limit: int, before: int | None) -> Hits:
    """Sessions that have the words in their title, or are called so: each stands where its newest entry does."""
    hits = Hits()
    both = zip(asked.ways, (wanted, *wanted.others), strict=True)
    ways = [(way, one) for way, one in both if way.terms and not of_entries(way).op]
    if not ways:
        return hits
    condition = Condition("not", "sessions.is_deleted").and_(Condition("not", "sessions.is_copied"))
    condition = condition.and_(
        either(*(one.sessions.and_(called_so(way)).and_(_active(one.span)) for way, one in ways))
    )
    if before is not None:
        condition = condition.and_(Condition("<=", "sessions.updated", (before - 1) >> SHIFT))
    cards = index.cards(condition, limit=limit + 1)
    if cards:
        from turnlog.catalog.ask.snippet import snippet

        sides = [[Needle(term) for term in way.terms if not term.negated] for way, _ in ways]
        needles = [needle for side in sides for needle in side]
        titles = _originals(index, cards)
        for card in cards[:limit]:
            at = card.updated_at or _EPOCH
            title = card.title or ""
            is_titled = any(all(needle.is_in(fold(title)) for needle in side) for side in sides)
            if is_titled and titles.get(card.copy_of or "") == title:
                continue  # a copy took it along
            text, marks = snippet(title if is_titled else " · ".join(filter(None, (card.id, title))), needles)
            hits.append(Hit(card, "", 0, TITLE, "", at, text, marks, _resume(card, 0), _cursor(at)))
    if len(cards) > limit:
        hits.next = _cursor(cards[limit - 1].updated_at or _EPOCH)
    return hits


def _cursor(at: datetime) -> int:
    return ((at - _EPOCH) // timedelta(milliseconds=1)) << SHIFT


def _originals(index: Index, cards: list[Card]) -> dict[str, str]:
    """The titles of those that these are copies of, and that are shown themselves, by what copies call them."""
    wanted = tuple({card.copy_of for card in cards if card.copy_of})
    if not wanted:
        return {}
    named = Condition("in", "sessions.native", wanted).or_(Condition("in", "sessions.name", wanted))
    condition = Condition("not", "sessions.is_deleted").and_(Condition("not", "sessions.is_copied"))
    return {card.id if card.is_ours else card.name: card.title or "" for card in index.cards(condition.and_(named))}


def _pages(indexes: Sequence[Index], wanted: list[Wanted], limit: int, before: int | None) -> list[Page]:
    return [Page(index, one, limit, before) for index, one in zip(indexes, wanted, strict=True)]


def _together(parts: list[Hits], limit: int) -> Hits:
    """One page of those of several indexes."""
    # Of one that was not looked through, nothing is known of what is older; others wait for it.
    reached = max((part.next for part in parts if part.is_cut and part.next is not None), default=0)
    found = sorted((hit for part in parts for hit in part if hit.cursor >= reached), key=_newest, reverse=True)
    with_places = {hit.card.name for hit in found[:limit] if hit.entry}
    found = [hit for hit in found if hit.entry or hit.card.name not in with_places]  # those stand under their title
    end = limit
    while end < len(found) and found[end].cursor == found[end - 1].cursor:
        end += 1  # two of the same moment are on the same page, or the second would be lost between two
    hits = Hits(found[:end])
    hits.is_cut = bool(reached) and end >= len(found)
    if end < len(found):
        hits.next = found[end - 1].cursor
    elif reached:
        hits.next = reached
    elif any(part.next is not None for part in parts):
        hits.next = found[-1].cursor
    return hits


def _newest(hit: Hit) -> int:
    return hit.cursor


def sessions_meant(
    index: Index, asked: Query, *, now_ms: int, zone: tzinfo | None = None, without: tuple[str, ...] = ()
) -> Condition:
    """The sessions with at least one entry that a query finds; without words, those it describes."""
    ways = [_meant(index, way, now_ms, zone, without) for way in asked.ways]
    return either(*ways) if all(way.op for way in ways) else Condition()


def _meant(index: Index, asked: Query, now_ms: int, zone: tzinfo | None, without: tuple[str, ...]) -> Condition:
    span = span_of(asked, now_ms=now_ms, zone=zone)
    condition = of_sessions(asked, index, without=without)
    never = of_entries(asked, negated=True)
    if never.op:
        condition = condition.but_not(Condition("has", value=Wanted(entries=never, span=span)))
    if is_of_entries(asked):
        entries = of_entries(asked, negated=False)
        having = _having(index, Wanted(asked.terms, entries=entries, span=span))
        if not entries.op:
            named = called_so(asked)
            having = having.or_(named.and_(_active(span)) if "since" not in without else named)
        return condition.and_(having)
    return condition.and_(_active(span)) if "since" not in without else condition


def _active(span: TimeSpan) -> Condition:
    """Sessions that were at work in that time."""
    condition = Condition()
    if span.since is not None:
        condition = condition.and_(Condition(">=", "sessions.updated", span.since))
    if span.until is not None:
        condition = condition.and_(Condition("<", "sessions.began", span.until))
    return condition


def _having(index: Index, wanted: Wanted) -> Condition:
    if all(term.kind in index.sure for term in wanted.terms):
        return Condition("has", value=wanted)
    sessions: set[int] = set()
    for terms in dict.fromkeys((wanted.terms, opened(wanted.terms))):
        page = Page(index, wanted._replace(terms=terms), is_for_sessions=True)
        sessions |= {match.session for match in page.found}
        if page.is_cut:
            words = " ".join(term.text for term in terms)
            raise Invalid(
                f"too much text to look for {words!r:.80} in all of it", hint="add a word, since: or workspace:"
            )
        if sessions:
            break
    return Condition("among", "sessions.id", tuple(sorted(sessions)))


def wanted_in(indexes: Sequence[Index], asked: Query, workspace: str | None, *, now_ms: int) -> list[Wanted]:
    """What a query looks for in each of the indexes. Behind an `OR`, code that is nowhere may begin inside a word."""
    ways: list[list[Wanted]] = []
    for way in asked.ways:
        span = span_of(way, now_ms=now_ms)
        wanted = [_wanted_of(index, way, workspace, span) for index in indexes]
        if (
            asked.others
            and may_open(way)
            and not any(page.found or page.is_cut for page in _pages(indexes, wanted, 1, None))
        ):
            wanted = [one._replace(terms=opened(one.terms)) for one in wanted]
        ways.append(wanted)
    return [first._replace(others=tuple(others)) for first, *others in zip(*ways, strict=True)]


def may_open(asked: Query) -> bool:
    """Whether code in it may begin inside a word; with an `OR`, that was seen to before."""
    return not asked.others and any(map(may_begin_inside, asked.terms))


def _wanted_of(index: Index, asked: Query, workspace: str | None, span: TimeSpan) -> Wanted:
    """What a query looks for in an index."""
    sessions = of_sessions(asked, index)
    if workspace is not None:
        sessions = sessions.and_(Condition("=", "sessions.workspace", workspace))
    return Wanted(asked.terms, sessions, of_entries(asked), span)


def opened(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """The same, and code may begin inside a word."""
    return tuple(term._replace(kind="part") if may_begin_inside(term) else term for term in terms)


class Page:
    """Entries that are what was looked for, up to a limit of them and of the text that was read for it."""

    def __init__(
        self,
        index: Index,
        wanted: Wanted,
        limit: int | None = None,
        before: int | None = None,
        *,
        is_for_sessions: bool = False,
    ) -> None:
        self.next: int | None = None
        self.is_cut = False
        self._index = index
        self._wanted = wanted
        self._limit = limit
        self._is_for_sessions = is_for_sessions
        """Whether one entry of each session is enough."""
        self._left = index.patience
        self._seen: set[int] = set()
        self.found = self._read(before)

    def _read(self, before: int | None) -> list[EntryMatch]:
        page: list[EntryMatch] = []
        for match in self._candidates(before):
            if self._limit is not None and len(page) == self._limit:
                self.next, self.is_cut = page[-1].id, False
                break
            page.append(match)
        return page

    def hits(self) -> Hits:
        """What is shown of them."""
        hits = Hits(hits_of(self._index, self.found, self._wanted))
        hits.next, hits.is_cut = self.next, self.is_cut
        return hits

    def _candidates(self, before: int | None) -> Iterator[EntryMatch]:
        if not self._wanted.others:
            yield from self._of(self._wanted, before)
            return
        ways = (self._of(one, before) for one in (self._wanted, *self._wanted.others))
        last = None
        for candidate in merge(*ways, key=lambda match: -match.id):
            if self.is_cut and candidate.id < (self.next or 0):
                return  # one of them was not looked through any further
            if candidate.id != last:
                yield candidate
            last = candidate.id

    def _of(self, wanted: Wanted, before: int | None) -> Iterator[EntryMatch]:
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


# ── hits ──────────────────────────────────────────────────────────────────────────────────────────


def hits_of(index: Index, page: list[EntryMatch], wanted: Wanted, clean: Callable[[str], str] = str) -> Iterator[Hit]:
    """What is shown of entries; `clean` is done to the text of each before a piece of it is cut out."""
    if not page:
        return
    from turnlog.catalog.ask.snippet import snippet

    needles = [Needle(term) for term in wanted.every_term if not term.negated]
    sessions = {match.session for match in page}
    cards, newest = index.cards_by_row(sessions), index.newest(sessions)
    texts = index.texts(match.id for match in page if match.text is None)
    for match in page:
        card = cards.get(match.session)
        if card is None:
            continue  # gone since the question was asked
        whole = clean(match.text if match.text is not None else texts.get(match.id, ""))
        text, marks = snippet(whole, needles)
        yield Hit(
            card=card,
            entry=match.entry,
            seq=match.step if card.is_ours else 0,
            role=match.role,
            tool=", ".join(filter(None, match.tools.split("\n"))),
            at=_EPOCH + timedelta(milliseconds=match.id >> SHIFT),
            snippet=text,
            marks=marks,
            resume=_resume(card, match.step if card.is_ours and match.step < newest[match.session] else 0),
            cursor=match.id,
        )


def _resume(card: Card, seq: int) -> tuple[str, ...]:
    """How to go on from there: an older entry of ours by a fork. Of a safety net, what it did."""
    if not card.is_conversation:
        return ("turnlog", "diff", "--session", card.name)
    return ("turnlog", "fork", card.name, "--at", str(seq)) if seq else ("turnlog", "resume", card.name)
