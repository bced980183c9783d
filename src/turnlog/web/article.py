"""Pieces of a conversation as articles, for the page and for what is loaded into it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import quote

from turnlog.catalog.ask.query import parse
from turnlog.catalog.index.terms import Needle
from turnlog.errors import Invalid
from turnlog.log.entry import AnyEntry, Message
from turnlog.view.html.row import HtmlRows
from turnlog.view.row import Attachment, Event, Output, Row, Speaker
from turnlog.view.rowmaker import Rows
from turnlog.view.time import local_minute
from turnlog.web.address import address_of
from turnlog.web.element import button, esc
from turnlog.web.query import ConversationQuery

if TYPE_CHECKING:
    from turnlog.reader.viewing.conversation import ConversationPieces
    from turnlog.reader.viewing.viewedsession import ViewedSession

_LONGEST = 40_000
"""The maximum number of characters of one output on the page; a click loads the rest."""
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def needles_of(query: str) -> list[Needle]:
    """What is marked: the words of a query, whatever else it says."""
    try:
        return [Needle(term) for term in parse(query).every_term if not term.negated]
    except Invalid:
        return []


class ArticleRows(HtmlRows):
    """Rows inside the article of their piece."""

    def __init__(self, query: ConversationQuery, *, can_fork: bool) -> None:
        super().__init__(needles_of(query.words))
        self._query, self._can_fork = query, can_fork

    def speaker(self, row: Speaker) -> str:
        """Who speaks, and when, in small type; the time is a link to the message."""
        facts = "".join(
            f"<span>{self.plain(fact)}</span>" for fact in filter(None, (row.agent, row.model, *row.facts()))
        )
        at = local_minute(row.at)
        when = f'<a class="place" href="{esc(self._query.address(at=row.seq))}">{at or f"entry {row.seq}"}</a>'
        fork = button("fork from here", "fork", at=row.seq) if self._can_fork else ""
        return f"<h2><b>{self.plain(row.role)}</b> {when} {facts}{fork}</h2>\n"

    def attachment(self, row: Attachment) -> str:
        """A stored picture is shown; any other stored file is a download."""
        if not row.digest:
            return super().attachment(row)
        address = esc(address_of(self._query.name, f"blob/{quote(row.digest, safe='')}"))
        if row.what == "image" and row.media_type in (None, *_PICTURES):
            picture = f'<img src="{address}" alt="{self.plain(row.label)}" loading="lazy">'
            return f'<p class="picture"><a href="{address}">{picture}</a></p>\n'
        return f'<p class="attachment"><a href="{address}" download>{self.text(row.label)}</a></p>\n'

    def output(self, row: Output) -> str:
        """What a tool answered; of a very long one the beginning, and where the rest is."""
        if self._query.is_full or len(row.text) <= _LONGEST:
            return super().output(row)
        from msgspec.structs import replace

        left = len(row.text) - _LONGEST
        html = super().output(replace(row, text=row.text[:_LONGEST]))
        more = self._query.address(at=row.seq, full=1)
        return f'{html}<p class="output"><a href="{esc(more)}">{left:,} more characters</a></p>\n'

    def event(self, row: Event) -> str:
        """What happened in between; a subagent is a link."""
        if row.session:
            address = esc(ConversationQuery(row.session, is_redacted=self._query.is_redacted).address())
            return f'<p class="event"><b>{row.kind}</b> <a href="{address}">{self.text(row.text)}</a></p>\n'
        return super().event(row)

    def event_anchor(self, row: Event) -> str:
        """None: the article of the piece has the id."""
        return ""


def articles(
    viewed: ViewedSession,
    query: ConversationQuery,
    pieces: ConversationPieces,
    first: int,
    end: int,
    *,
    can_fork: bool = False,
    mark: int = 0,
) -> str:
    """The pieces from `first` and before `end`. Whoever asks holds the mutex."""
    first, end = max(0, first), min(end, len(pieces))
    costs, read = viewed.read_with_costs(first, end, is_redacted=query.is_redacted, pieces=pieces)
    rows = Rows(price=costs, size=viewed.blob_size)
    drawer = ArticleRows(query, can_fork=can_fork)
    return "".join(
        _article(drawer, rows.paired(entries), entries, pieces, position, mark)
        for position, entries in enumerate(read, first)
    )


def _article(
    drawer: ArticleRows,
    rows: Iterable[Row],
    entries: list[AnyEntry],
    pieces: ConversationPieces,
    position: int,
    mark: int,
) -> str:
    first = entries[0] if entries else None
    role = first.role if isinstance(first, Message) else "other"
    role = role if role in ("user", "assistant", "system", "tool") else "other"
    seq = pieces.seq(position)
    is_marked = mark and any(entry.seq == mark for entry in entries)
    body = "".join(map(drawer.row, rows))
    return (
        f'<article class="{role}{" asked" if is_marked else ""}" data-seq="{seq}" data-piece="{position}" id="e{seq}" '
        f'tabindex="-1" aria-posinset="{position + 1}" aria-setsize="{len(pieces)}">\n{body}</article>\n'
    )
