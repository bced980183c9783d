"""Pieces of a conversation as articles, for the page and for what is loaded into it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from turnlog.catalog.ask.query import parse
from turnlog.catalog.index.terms import Needle
from turnlog.errors import Corrupt, Invalid, NotFound
from turnlog.log.entry import AnyEntry, Message
from turnlog.view.cost import Costs
from turnlog.view.html import HtmlRows
from turnlog.view.plain import attachment
from turnlog.view.row import Attachment, Event, Output, Row, Rows, Size, Speaker
from turnlog.web.frame import address_of, button, esc, moment

if TYPE_CHECKING:
    from turnlog.reader.conversation import ConversationPieces
    from turnlog.reader.desk import LookedAt

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

    def __init__(self, name: str, needles: Sequence[Needle], *, can_fork: bool, is_full: bool) -> None:
        super().__init__(needles)
        self._name, self._can_fork, self._is_full = name, can_fork, is_full

    def speaker(self, row: Speaker) -> str:
        """Who speaks, and when, in small type; the time is a link to the message."""
        told = "".join(f"<span>{self.plain(fact)}</span>" for fact in filter(None, (row.agent, row.model, *row.took())))
        at = "" if row.at is None else moment(round(row.at.timestamp() * 1000))
        place = f'<a class="place" href="{esc(address_of(self._name, at=row.seq))}">{at or f"entry {row.seq}"}</a>'
        fork = button("fork from here", "fork", at=row.seq) if self._can_fork else ""
        return f"<h2><b>{self.plain(row.role)}</b> {place} {told}{fork}</h2>\n"

    def attachment(self, row: Attachment) -> str:
        """A picture that is kept is shown, anything else can be had."""
        if not row.digest:
            return super().attachment(row)
        place = esc(address_of(self._name, f"blob/{quote(row.digest, safe='')}"))
        if row.what == "image" and row.media_type in (None, *_PICTURES):
            shown = f'<img src="{place}" alt="{self.plain(attachment(row))}" loading="lazy">'
            return f'<p class="picture"><a href="{place}">{shown}</a></p>\n'
        return f'<p class="attachment"><a href="{place}" download>{self.text(attachment(row))}</a></p>\n'

    def output(self, row: Output) -> str:
        """What a tool answered; of a very long one the beginning, and where the rest is."""
        if self._is_full or len(row.text) <= _LONGEST:
            return super().output(row)
        from msgspec.structs import replace

        left = len(row.text) - _LONGEST
        made = super().output(replace(row, text=row.text[:_LONGEST]))
        more = address_of(self._name, at=row.seq, full=1)
        return f'{made}<p class="output"><a href="{esc(more)}">{left:,} more characters</a></p>\n'

    def event(self, row: Event) -> str:
        """What happened in between; a subagent is a link."""
        if row.kind == "subagent" and row.session:
            place = esc(address_of(row.session))
            return f'<p class="event"><b>subagent</b> <a href="{place}">{self.text(row.text)}</a></p>\n'
        return super().event(row).replace(f' id="e{row.seq}"', "")


def articles(
    looked: LookedAt,
    first: int,
    end: int,
    *,
    query: str = "",
    is_redacted: bool = False,
    can_fork: bool = False,
    is_full: bool = False,
    mark: int = 0,
    pieces: ConversationPieces | None = None,
) -> str:
    """The pieces from `first` and before `end`. Whoever asks holds the mutex."""
    talk = pieces or looked.pieces
    first, end = max(0, first), min(end, len(talk))
    price = Costs()
    for piece in looked.read(max(0, first - 1), first, pieces=talk):
        for entry in piece:
            price(entry)  # a request that became several messages is paid once
    rows = Rows(price=price, size=_sizes(looked))
    drawer = ArticleRows(looked.card.name, needles_of(query), can_fork=can_fork, is_full=is_full)
    made: list[str] = []
    read = looked.read(first, end, is_redacted=is_redacted, pieces=talk)
    for position, entries in enumerate(read, first):
        made.append(_article(drawer, rows.paired(entries), entries, talk, position, mark))
    return "".join(made)


def _article(
    drawer: ArticleRows,
    rows: Iterable[Row],
    entries: list[AnyEntry],
    talk: ConversationPieces,
    position: int,
    mark: int,
) -> str:
    first = entries[0] if entries else None
    role = first.role if isinstance(first, Message) else "other"
    role = role if role in ("user", "assistant", "system", "tool") else "other"
    seq = talk.seq(position)
    is_marked = mark and any(entry.seq == mark for entry in entries)
    body = "".join(map(drawer.row, rows))
    return (
        f'<article class="{role}{" asked" if is_marked else ""}" data-seq="{seq}" data-piece="{position}" id="e{seq}" '
        f'tabindex="-1" aria-posinset="{position + 1}" aria-setsize="{len(talk)}">\n{body}</article>\n'
    )


def _sizes(looked: LookedAt) -> Size:
    def size(digest: str) -> int | None:
        try:
            return len(looked.blob(digest))
        except (NotFound, Corrupt):
            return None

    return size
