"""The numbers of a session, `/s/NAME/stats`: context, cost per prompt, tools, files."""

from __future__ import annotations

from bisect import bisect_left
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from starlette.requests import Request
from starlette.routing import Route

from turnlog.catalog.ask import detail
from turnlog.thread.outline import PROMPT
from turnlog.view.number import count, dollars, tokens
from turnlog.web.address import address_of
from turnlog.web.chart import bars, line
from turnlog.web.element import esc, link, moment, table
from turnlog.web.frame import page, standing_note, tabs
from turnlog.web.outline import costs_by_prompt
from turnlog.web.sessionrow import unpriced
from turnlog.web.viewer import Viewer, name_in, viewer_of

if TYPE_CHECKING:
    from starlette.responses import Response

    from turnlog.catalog import Card, TokenSums
    from turnlog.reader.viewing.viewedsession import ViewedSession
    from turnlog.thread.outline import OutlineItem

_BARS = 400
_ROWS = 50


class _DrawnStats(NamedTuple):
    """The drawing of a session, and the state of it that was drawn."""

    state: object
    html: str


_DRAWN: WeakKeyDictionary[ViewedSession, _DrawnStats] = WeakKeyDictionary()
"""The drawings of sessions that lie open; `_MUTEX` is held to look at it."""
_MUTEX = Lock()


def show(request: Request) -> Response:
    """The page about the numbers of a session."""
    viewer = viewer_of(request)
    viewed = viewer.open(name_in(request))
    with viewed.mutex:
        card, title = viewed.card, viewed.title
        state = (card, viewed.version, viewer.catalog.standing().pending)
    with _MUTEX:
        drawn = _DRAWN.get(viewed)
    if drawn is None or drawn.state != state:  # drawn without the mutex, so that readers of the page do not wait
        with viewed.mutex:
            outline = viewed.pieces.outline
            prompts = [outline.item(index) for index, flags in enumerate(outline.flags) if flags & PROMPT]
        drawn = _DrawnStats(state, _numbers(viewer, card, prompts))
        with _MUTEX:
            _DRAWN[viewed] = drawn
    head = f"<h1>{esc(title)}</h1>{tabs(card.name, 'stats', is_ours=card.is_ours)}{standing_note(viewer)}"
    return page(request, f"Stats · {title} · turnlog", head + drawn.html, kind="stats")


def _numbers(viewer: Viewer, card: Card, prompts: list[OutlineItem]) -> str:
    drawn = f"{_sums(card)}{_context(viewer, card)}{_costs(viewer, card, prompts)}{_tools(viewer, card)}"
    return drawn + _files(viewer, card)


def _sums(card: Card) -> str:
    rows = [
        _row("its own", card.own, is_partial=bool(card.unpriced)),
        _row("of its subagents", card.subagents),
        _row("inherited", card.inherited),
    ]
    read, cached = card.own.all_input_tokens, card.own.cache_read_tokens
    share = f"<p>{cached / read:.0%} of what was read came from a cache.</p>" if cached else ""
    heads = ("Tokens", "In", "Cache read", "Cache write", "Out", "Cost")
    sums = table(heads, [row for row in rows if row], caption="Tokens", right=range(1, 6))
    return f"<h2>Tokens</h2>{sums}{share}{unpriced(card.unpriced)}"


def _row(name: str, spent: TokenSums, *, is_partial: bool = False) -> tuple[str, ...]:
    if not any(spent):
        return ()
    cache_write_tokens = spent.cache_write_tokens + spent.cache_write_1h_tokens
    cells = (spent.input_tokens, spent.cache_read_tokens, cache_write_tokens, spent.output_tokens)
    return esc(name), *(f"{cell:,}" for cell in cells), esc(dollars(spent.cost_micros, is_partial=is_partial))


def _context(viewer: Viewer, card: Card) -> str:
    points = viewer.catalog.ask(detail.context, card)
    requests = [point for point in points if not point.is_compaction]
    if not requests:
        return ""
    values = [point.tokens for point in requests]
    cuts = [bisect_left([one.seq for one in requests], point.seq) for point in points if point.is_compaction]
    chart = line(
        "Context per request", values, cuts, most=tokens(max(values)), first=moment(requests[0].at_ms),
        last=moment(requests[-1].at_ms),
    )  # fmt: skip
    rows = [
        (link(address_of(card.name, at=point.seq), str(point.seq)), moment(point.at_ms),
         "compacted" if point.is_compaction else f"{point.tokens:,}", esc(point.model))
        for point in points
    ]  # fmt: skip
    as_table = table(("Entry", "Time", "Tokens", "Model"), rows, caption="Context per request", right=(2,))
    compactions = f", {count(len(cuts), 'compaction')}" if cuts else ""
    more = f"<details><summary>The same as a table</summary>{as_table}</details>"
    return f"<h2>Context, at most {tokens(max(values))} tokens{compactions}</h2>{chart}{more}"


def _costs(viewer: Viewer, card: Card, prompts: list[OutlineItem]) -> str:
    if not prompts:
        return ""
    seqs = [item.seq for item in prompts]
    costs = costs_by_prompt(viewer, card, seqs)
    sums = [costs.get(seq, 0) for seq in seqs]
    if not any(sums):
        return ""
    size = -(-len(sums) // _BARS)
    columns = [[sum(sums[begin : begin + size])] for begin in range(0, len(sums), size)]
    most = max(row[0] for row in columns)
    heading = "Cost per prompt" if size == 1 else f"Cost per {size} prompts"
    chart = bars(heading, columns, most=dollars(most), first="1", last=f"{len(sums):,}")
    dear = sorted(range(len(sums)), key=lambda index: -sums[index])[:_ROWS]
    rows = [
        (
            link(address_of(card.name, at=seqs[index]), prompts[index].label or str(seqs[index])),
            esc(dollars(sums[index])),
        )
        for index in dear
        if sums[index]
    ]
    as_table = table(("Prompt", "Cost"), rows, caption="The dearest prompts", right=(1,))
    return f"<h2>{heading}</h2>{chart}<details><summary>The dearest</summary>{as_table}</details>"


def _tools(viewer: Viewer, card: Card) -> str:
    tools = viewer.catalog.ask(detail.tools, card)
    if not tools:
        return ""
    rows = [
        (esc(one.tool), f"{one.calls:,}", f"{one.errors:,}" if one.errors else "", _time(one.took_ms)) for one in tools
    ]
    return f"<h2>Tools</h2>{table(('Tool', 'Calls', 'Errors', 'Time'), rows, caption='Tools', right=(1, 2, 3))}"


def _time(took_ms: int) -> str:
    seconds = took_ms / 1000
    return "" if not took_ms else f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _files(viewer: Viewer, card: Card) -> str:
    files = viewer.catalog.ask(detail.files, card)
    if not files:
        return ""
    rows = [
        (f"<code>{esc(one.path)}</code>", link(address_of(card.name, at=one.seq), f"{one.times:,}"))
        for one in files[:_ROWS]
    ]
    more = f"<p>… and {len(files) - _ROWS:,} more</p>" if len(files) > _ROWS else ""
    return (
        f"<h2>Files that tools were called with</h2>{table(('File', 'Times'), rows, caption='Files', right=(1,))}{more}"
    )


ROUTES = [Route("/s/{name}/stats", show)]
