"""Branches, forks and subagents of a session, `/s/NAME/tree`: where each left, what it cost, which is the head."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from starlette.requests import Request
from starlette.routing import Route

from turnlog.reader.forkparent import fork_parents
from turnlog.view.number import count
from turnlog.web.address import address_of, compare_address
from turnlog.web.element import esc, link, when
from turnlog.web.frame import page, tabs
from turnlog.web.sessionrow import cost_of
from turnlog.web.viewer import Viewer, name_in, viewer_of

if TYPE_CHECKING:
    from starlette.responses import Response

    from turnlog.catalog import Card
    from turnlog.reader.viewing.viewedsession import ViewedSession

_MOST = 300
"""The maximum number of sessions on the page, and of ends of the conversation."""


class BranchRow(NamedTuple):
    """An end of the conversation: where it left the way to the head, and what was asked there first."""

    head: int
    left: int
    messages: int
    label: str
    at_ms: int
    is_current: bool


class BranchRows(NamedTuple):
    """Ends of the conversation, the newest first, and how many more there are."""

    rows: list[BranchRow]
    left_out: int


def branches_of(viewed: ViewedSession) -> BranchRows:
    """The newest ends of the conversation and the current one; none where there is only one."""
    outline, head = viewed.pieces.outline, viewed.pieces.head
    nodes = [
        index
        for index, (parent, kind) in enumerate(zip(outline.parents, outline.kinds, strict=True))
        if parent >= 0 and kind != "head"
    ]
    inner = {outline.parents[index] for index in nodes}
    ends = [index for index in reversed(nodes) if outline.seqs[index] not in inner or outline.seqs[index] == head]
    if all(outline.seqs[index] == head for index in ends):
        return BranchRows([], 0)  # one way, and no other
    main = set(outline.path(head))
    rows: list[BranchRow] = []
    for number, index in enumerate(ends):
        seq = outline.seqs[index]
        is_current = seq == head
        if number >= _MOST and not is_current:
            continue
        own = [node for node in outline.path(seq) if is_current or node not in main]
        label = next((outline.labels[outline.seqs[node]] for node in own if outline.seqs[node] in outline.labels), "")
        left = outline.parents[own[0]] if own and not is_current else 0
        rows.append(BranchRow(seq, left, len(own), label, outline.times[index], is_current))
    return BranchRows(rows, len(ends) - len(rows))


def show(request: Request) -> Response:
    """The page about where a session branched."""
    viewer = viewer_of(request)
    viewed = viewer.open(name_in(request))
    with viewed.mutex:
        card, title = viewed.card, viewed.title
        branches = branches_of(viewed)
    card, *cards = _with_parents(viewer, [card, *viewer.catalog.cards(everything=True)])
    head = f"<h1>{esc(title)}</h1>{tabs(card.name, 'tree', is_ours=card.is_ours)}"
    return page(request, f"Tree · {title} · turnlog", head + _FamilyTree(card, cards, branches).html())


def _with_parents(viewer: Viewer, cards: list[Card]) -> list[Card]:
    """The cards, with `fork` only where the parent still is the session that was forked."""
    parents = fork_parents(viewer.home, viewer.home.sessions())
    return [card._replace(fork=parents.get(card.id)) if card.is_ours and card.fork else card for card in cards]


class _FamilyTree:
    """The session that the one asked for comes from, with its forks and subagents, and theirs."""

    def __init__(self, asked: Card, cards: list[Card], branches: BranchRows) -> None:
        self._asked, self._branches = asked, branches
        self._below: dict[tuple[bool, str], list[Card]] = {}
        """The forks and subagents of each session, by whether that is ours, and by its id."""
        for card in cards:
            for parent in {card.fork, card.parent} - {None}:
                self._below.setdefault((card.is_ours, str(parent)), []).append(card)
        way = _way_to(asked, cards)
        self._top = way[-1]
        self._names = {card.name for card in way}
        """The sessions on the page: those on the way to the one asked for, then the first ones from the top."""
        self._left_out = self._choose()

    def _choose(self) -> int:
        """Choose the sessions on the page. Returns how many are left out."""
        visited: set[str] = set()
        waiting = [self._top]
        while waiting:
            card = waiting.pop()
            if card.name not in visited:
                visited.add(card.name)
                waiting += reversed(self._below.get((card.is_ours, card.id), []))
                if len(self._names) < _MOST:
                    self._names.add(card.name)
        return len(visited - self._names)

    def html(self) -> str:
        """The tree, and how many sessions are left out of it."""
        tree = f'<ul class="tree">{self._item(self._top)}</ul>'
        if not self._left_out:
            return tree
        return f'{tree}<p class="note">{count(self._left_out, "more session")} of this family are left out here.</p>'

    def _item(self, card: Card) -> str:
        if card.name not in self._names:
            return ""
        self._names.remove(card.name)  # once: a session may be its own parent
        is_asked = card.name == self._asked.name
        inner = self._branch_items(card) if is_asked and len(self._branches.rows) > 1 else ""
        inner += "".join(map(self._item, self._below.get((card.is_ours, card.id), ())))
        kind = "fork" if card.fork else "subagent" if card.parent else ""
        cost = cost_of(card, card.own.cost_micros)
        facts = " · ".join(filter(None, (kind, count(card.turns, "turn"), cost, card.agent or "")))
        name = link(address_of(card.name), card.heading, current=is_asked)
        beside = ""
        if not is_asked:
            beside = f" <small>{link(compare_address(self._asked.name, card.name), 'compare')}</small>"
        below = f"<ul>{inner}</ul>" if inner else ""
        return f"<li>{name}<small>{esc(facts)} {when(card.updated_ms)}</small>{beside}{below}</li>\n"

    def _branch_items(self, card: Card) -> str:
        items = "".join(_branch(card, branch) for branch in self._branches.rows)
        left_out = self._branches.left_out
        return items + (f"<li>… and {count(left_out, 'older branch', 'older branches')}</li>\n" if left_out else "")


def _way_to(card: Card, cards: list[Card]) -> list[Card]:
    """The session, what it was forked from or started by, and so on, at most as many as there is room for."""
    by_id = {(one.is_ours, one.id): one for one in reversed(cards)}
    way = [card]
    visited = {card.id}
    while len(way) < _MOST:
        name = way[-1].fork or way[-1].parent
        parent = by_id.get((way[-1].is_ours, name)) if name else None
        if parent is None or parent.id in visited:
            break
        visited.add(parent.id)
        way.append(parent)
    return way


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
