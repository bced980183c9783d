"""Branches, forks and subagents of a session, `/s/NAME/tree`: where each left, what it cost, which is the head."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from starlette.requests import Request
from starlette.routing import Route

from turnlog.reader.forkparent import fork_parents
from turnlog.view.number import count, dollars
from turnlog.web.address import address_of, compare_address
from turnlog.web.element import esc, link, when
from turnlog.web.frame import page, tabs
from turnlog.web.viewer import Viewer, name_in, viewer_of

if TYPE_CHECKING:
    from starlette.responses import Response

    from turnlog.catalog import Card
    from turnlog.reader.viewing.viewedsession import ViewedSession

_MOST = 300


class BranchRow(NamedTuple):
    """An end of the conversation: where it left the way to the head, and what was asked there first."""

    head: int
    left: int
    messages: int
    label: str
    at_ms: int
    is_current: bool


def branches_of(viewed: ViewedSession) -> list[BranchRow]:
    """Every end of the conversation, the newest first; none where there is only one."""
    outline = viewed.pieces.outline
    nodes = [
        index
        for index, (parent, kind) in enumerate(zip(outline.parents, outline.kinds, strict=True))
        if parent >= 0 and kind != "head"
    ]
    inner = {outline.parents[index] for index in nodes}
    if all(outline.seqs[index] in inner or outline.seqs[index] == viewed.pieces.head for index in nodes):
        return []  # one way, and no other
    main = set(outline.path(viewed.pieces.head))
    branches: list[BranchRow] = []
    for index in reversed(nodes):
        seq = outline.seqs[index]
        is_current = seq == viewed.pieces.head
        if (seq in inner and not is_current) or len(branches) >= _MOST:
            continue
        own = [row for row in outline.path(seq) if is_current or row not in main]
        label = next((outline.labels[outline.seqs[row]] for row in own if outline.seqs[row] in outline.labels), "")
        left = outline.parents[own[0]] if own and not is_current else 0
        branches.append(BranchRow(seq, left, len(own), label, outline.times[index], is_current))
    return branches


def show(request: Request) -> Response:
    """The page about where a session branched."""
    viewer = viewer_of(request)
    viewed = viewer.open(name_in(request))
    with viewed.mutex:
        card, title = viewed.card, viewed.title
        branches = branches_of(viewed)
    card, *cards = _with_parents(viewer, [card, *viewer.catalog.cards(everything=True)])
    top = _top(card, cards)
    body = (
        f"<h1>{esc(title)}</h1>{tabs(card.name, 'tree', is_ours=card.is_ours)}"
        f'<ul class="tree">{_family(top, cards, card, branches, set())}</ul>'
    )
    return page(request, f"Tree · {title} · turnlog", body)


def _with_parents(viewer: Viewer, cards: list[Card]) -> list[Card]:
    """The cards, with `fork` only where the parent still is the session that was forked."""
    parents = fork_parents(viewer.home, viewer.home.sessions())
    return [card._replace(fork=parents.get(card.id)) if card.is_ours and card.fork else card for card in cards]


def _top(card: Card, cards: list[Card]) -> Card:
    """The session that it was forked from, or started by, in the end."""
    visited = {card.id}
    above = card
    while True:
        name = above.fork or above.parent
        parent = next((one for one in cards if one.id == name and one.is_ours == above.is_ours), None) if name else None
        if parent is None or parent.id in visited:
            return above
        visited.add(parent.id)
        above = parent


def _family(card: Card, cards: list[Card], asked: Card, branches: list[BranchRow], seen: set[str]) -> str:
    if card.name in seen or len(seen) > _MOST:
        return ""
    seen.add(card.name)
    below = "".join(
        _family(one, cards, asked, branches, seen)
        for one in cards
        if one.is_ours == card.is_ours and card.id in (one.fork, one.parent)
    )
    inner = below
    if card.name == asked.name and len(branches) > 1:
        inner = "".join(_branch(card, branch) for branch in branches) + below
    kind = "fork " if card.fork else "subagent " if card.parent else ""
    cost = card.own.cost_micros
    facts = " · ".join(
        filter(None, (kind.strip(), count(card.turns, "turn"), dollars(cost) if cost else "", card.agent or ""))
    )
    name = link(address_of(card.name), card.heading, current=card.name == asked.name)
    beside = ""
    if card.name != asked.name:
        beside = f" <small>{link(compare_address(asked.name, card.name), 'compare')}</small>"
    below = f"<ul>{inner}</ul>" if inner else ""
    return f"<li>{name}<small>{esc(facts)} {when(card.updated_ms)}</small>{beside}{below}</li>\n"


def _branch(card: Card, branch: BranchRow) -> str:
    address = address_of(card.name) if branch.is_current else address_of(card.name, branch=branch.head)
    origin = "the head" if branch.is_current else f"left at {branch.left}" if branch.left else "from the beginning"
    mark = "<b>●</b> " if branch.is_current else ""
    facts = f"{origin} · {count(branch.messages, 'entry', 'entries')}"
    name = link(address, branch.label or f"entry {branch.head}")
    beside = ""
    if not branch.is_current:
        beside = f" <small>{link(compare_address(card.name, card.name, branch_b=branch.head), 'compare')}</small>"
    return f"<li>{mark}{name}<small>{facts} {when(branch.at_ms)}</small>{beside}</li>\n"


ROUTES = [Route("/s/{name}/tree", show)]
