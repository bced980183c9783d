"""A session, `/s/NAME`: the outline beside the conversation, of which only what is near the screen is in the page."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import PurePath
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from turnlog.catalog.ask import detail
from turnlog.reader.part import numbered
from turnlog.thread.reader import history_of
from turnlog.view.number import count, tokens
from turnlog.view.visible import quoted
from turnlog.web.address import address_of, compare_address
from turnlog.web.article import articles
from turnlog.web.element import button, esc, facts, link
from turnlog.web.frame import page, tabs
from turnlog.web.outline import outline_around
from turnlog.web.query import ConversationQuery, query_of
from turnlog.web.sessionrow import cost_of, dot
from turnlog.web.viewer import Viewer, name_in, viewer_of

if TYPE_CHECKING:
    from turnlog.catalog import Card
    from turnlog.reader.viewing.conversation import ConversationPieces
    from turnlog.reader.viewing.viewedsession import ViewedSession

WINDOW = 40
"""How many pieces are in a page at first."""
_BEFORE = 10


def show(request: Request) -> Response:
    """The page of a session."""
    viewer, name = viewer_of(request), name_in(request)
    viewed = viewer.open(name)
    with viewed.mutex:
        pieces = query_of(request).pieces_of(viewed)
        at = request.query_params.get("at", "")
        mark = viewed.find(at) if at else 0
        if mark and pieces is viewed.pieces and not pieces.has(mark):
            pieces = _branch_with(viewed, mark)
        first = _first(request, pieces, mark)
        query = query_of(request)._replace(branch=_branch_of(viewed, pieces))
        card, title = viewed.card, viewed.title
        if query.is_redacted:
            title = viewed.redacted_title()
        html = articles(viewed, query, pieces, first, first + WINDOW, can_fork=viewer.can_change(card), mark=mark)
        nav = outline_around(viewer, viewed, query, pieces, first)
        version, total = viewed.version, len(pieces)
        body = (
            f"{_head(viewer, viewed, query, title)}"
            f"{tabs(card.name, '', is_ours=card.is_ours, conversation=query.address())}"
            f'<div class="columns">{nav}<div class="reading">{_problem(card)}'
            f"{_step(query, pieces, first, later=False)}"
            f'<div data-testid="conversation" role="feed" aria-busy="false" aria-label="Conversation" '
            f'data-name="{esc(card.name)}" data-first="{first}" data-end="{min(total, first + WINDOW)}" '
            f'data-total="{total}" data-version="{version}" data-branch="{query.branch}" '
            f'data-at="{mark}" data-query="{esc(query.words)}" data-redact="{int(query.is_redacted)}">\n{html}</div>'
            f"{_nothing_said(total)}{_step(query, pieces, first, later=True)}{_foot(card)}</div></div>"
        )
    return page(request, f"{title} · turnlog", body, query=query.words, kind="session")


def _branch_of(viewed: ViewedSession, pieces: ConversationPieces) -> str:
    return "" if pieces is viewed.pieces else str(pieces.head)


def _branch_with(viewed: ViewedSession, seq: int) -> ConversationPieces:
    """The newest branch that has an entry which the head left."""
    outline = viewed.pieces.outline
    index = bisect_right(outline.seqs, seq) - 1
    while index >= 0 and outline.parents[index] < 0:
        index -= 1  # a mark is where the conversation stood when it was made
    if index < 0:
        return viewed.pieces
    end = outline.parents[index] if outline.kinds[index] == "head" else outline.seqs[index]
    inside = {end}
    for node, parent, kind in zip(outline.seqs, outline.parents, outline.kinds, strict=True):
        if parent in inside and kind != "head":
            inside.add(node)
            end = node
    branch = viewed.branch(end) if end else viewed.pieces
    return branch if branch.has(seq) else viewed.pieces


def _first(request: Request, pieces: ConversationPieces, mark: int) -> int:
    first = numbered(request.query_params.get("from", ""))
    last = max(0, len(pieces) - WINDOW)
    if first is not None:
        return min(first, last)
    return max(0, min(pieces.position(mark) - _BEFORE, last)) if mark else last


# ── above ─────────────────────────────────────────────────────────────────────────────────────────


def _head(viewer: Viewer, viewed: ViewedSession, query: ConversationQuery, title: str) -> str:
    edit = ""
    if not viewer.is_read_only and not query.is_redacted:  # what is redacted would be stored as the title
        edit = button("rename", "title", testid="title-edit") + (
            f'<input data-testid="title-input" aria-label="Title" maxlength="500" value="{esc(title)}" hidden>'
        )
    notes = [] if query.is_redacted else viewer.desk.notes_on(viewed.card)
    notes_html = "".join(f'<p data-testid="note">{esc(note.text)}</p>' for note in notes)
    return (
        f'<div class="head"><h1>{esc(title)}</h1>{edit}</div>{facts(_facts(viewer, viewed, query))}{notes_html}'
        f"{_actions(viewer, viewed, query)}"
    )


def _facts(viewer: Viewer, viewed: ViewedSession, query: ConversationQuery) -> list[str]:
    card = viewed.card
    clean = viewed.redactor().text if query.is_redacted else str
    folder = clean(card.workspace or "")
    read = card.own.all_input_tokens + card.subagents.all_input_tokens
    written = card.own.output_tokens + card.subagents.output_tokens
    peak = viewer.catalog.ask(detail.fullest, card) if card.messages < 5_000 else _peak(viewed)
    compactions = viewed.pieces.outline.kinds.count("compaction")
    return [
        f"{dot(card.state)} {esc(card.state)}" if card.state in ("running", "waiting") else "",
        esc(card.agent or ""),
        esc(card.model or ""),
        f'<span title="{esc(folder)}">{esc(PurePath(folder).name)}</span>' if folder else "",
        count(card.turns, "turn"),
        f"{tokens(read)} tokens in, {tokens(written)} out" if read or written else "",
        cost_of(card, card.cost_micros),
        f"context at most {tokens(peak)}" if peak else "",
        count(compactions, "compaction") if compactions else "",
        *(esc(f"#{clean(tag)}") for tag in card.tags),
        f"{esc(card.name)}",
    ]


def _peak(viewed: ViewedSession) -> int:
    return 0 if viewed.session is None else history_of(viewed.session).state.peak


def _actions(viewer: Viewer, viewed: ViewedSession, query: ConversationQuery) -> str:
    card = viewed.card
    command = f"turnlog resume {quoted(card.name)} --exec"
    exports = "".join(
        f"<li>{link(address_of(card.name, 'export', to=form), text)}</li>"
        for form, text in (("html", "HTML"), ("markdown", "Markdown"), ("json", "JSON"), ("jsonl", "JSON lines"))
    )
    other = "Show as it is" if query.is_redacted else "Show without secrets"
    more = [link(query._replace(is_redacted=not query.is_redacted).address(), other)]
    if viewer.can_change(card):
        more += [button("Fork at its end", "fork", at=viewed.pieces.head)] if viewed.pieces.head else []
        more.append(button("Delete, to the trash", "delete"))
    copy = button("Copy resume command", "copy", command=command, testid="copy-resume")
    return (
        f'<div class="actions">{copy}<noscript><code>{esc(command)}</code></noscript>'
        f'<details class="needs-script"><summary>Go on in</summary><ul data-from="agents"></ul></details>'
        f"<details><summary>Export</summary><ul>{exports}</ul></details>"
        f"{link(compare_address(card.name), 'Compare')}"
        f"<details><summary>More</summary><ul>{''.join(f'<li>{one}</li>' for one in more)}</ul></details></div>"
    )


def _problem(card: Card) -> str:
    problems = [
        card.problem,
        f"{count(card.damage, 'place')} in it cannot be read: see `turnlog doctor`" if card.damage else "",
    ]
    return "".join(f'<p class="note" role="alert">{esc(one)}</p>' for one in problems if one)


def _nothing_said(total: int) -> str:
    return "" if total else '<p data-testid="empty">Nothing was said in it yet.</p>'


def _foot(card: Card) -> str:
    state = "live" if card.state in ("running", "waiting") else "ended"
    return (
        f'<p class="foot"><span data-testid="live" data-state="{state}" role="status"></span> '
        '<button type="button" data-testid="new" data-action="end" hidden></button></p>'
    )


# ── beside ────────────────────────────────────────────────────────────────────────────────────────


def _step(query: ConversationQuery, pieces: ConversationPieces, first: int, *, later: bool) -> str:
    """The way to the pieces before these, or after: for who has no script, and while one loads."""
    begin = first + WINDOW if later else max(0, first - WINDOW)
    if (later and begin >= len(pieces)) or (not later and not first):
        return f'<p class="step" data-step="{"later" if later else "earlier"}" hidden></p>'
    number = len(pieces) - begin if later else first
    text = f"Later: {number:,} more" if later else f"Earlier: {number:,} more"
    step = link(query.address(**{"from": begin}), text)
    return f'<p class="step" data-step="{"later" if later else "earlier"}">{step}</p>'


ROUTES = [Route("/s/{name}", show)]
