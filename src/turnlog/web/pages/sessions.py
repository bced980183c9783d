"""The list of sessions, `/`: all there are, or what fits a query as `turnlog search` takes it, with the places."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from turnlog.catalog.ask.detail import count_listed
from turnlog.catalog.ask.query import HELP, Filter, Query, parse
from turnlog.errors import Invalid
from turnlog.reader.part import numbered
from turnlog.view.number import count
from turnlog.web.address import address_of
from turnlog.web.element import esc, link
from turnlog.web.frame import page, standing_note
from turnlog.web.sessionrow import marked, session_row
from turnlog.web.stream import LIST, version_in
from turnlog.web.viewer import Viewer, viewer_of

if TYPE_CHECKING:
    from turnlog.catalog import Card
    from turnlog.catalog.answer import FoundPage, Hit

_ROWS, _FOUND_ROWS = 400, 20
"""How many sessions are on a page: without a query, and with one."""
_PAGES = 99_999
_PLACES = 1_500
"""The maximum number of places counted for a page."""
_CHIPS = 4
_PARTS = 8
_TYPED = re.compile(r"(?:^|\s)\w{2,}$")
"""A query that ends with a plain word."""
SORTS = {"age": "Age", "cost": "Cost", "turns": "Turns"}


def sessions(request: Request) -> Response:
    """The list of sessions."""
    viewer = viewer_of(request)
    query = request.query_params.get("q", "").strip()
    sort = request.query_params.get("sort", "age")
    number = numbered(request.query_params.get("page", "")) or 1
    number = number if number <= _PAGES else 1
    parsed = Query()
    try:
        parsed = parse(query)
        body = _results(viewer, query, parsed, sort if sort in SORTS else "age", number)
        status = 200
    except Invalid as error:
        hint = f" <span>{esc(error.hint)}</span>" if error.hint else ""
        body = f'<p role="alert">{esc(error.message)}{hint}</p>{_help()}'
        status = 400
    chips = _chips(viewer, parsed)
    heading = "Sessions" if not query else f"Sessions: {query}"
    whole = f'<h1 class="unseen">Sessions</h1>{chips}<div id="results" data-live="/stream">{body}</div>'
    return page(request, f"{heading} · turnlog", whole, query=query, here="/", kind="list", status=status)


async def stream(request: Request) -> Response:
    """Tells when there is another list."""
    events = viewer_of(request).streams.listen(LIST, version_in(request.headers.get("last-event-id", "")))
    return StreamingResponse(events, media_type="text/event-stream")


ROUTES = [Route("/", sessions), Route("/stream", stream)]


# ── what fits ─────────────────────────────────────────────────────────────────────────────────────


def _results(viewer: Viewer, query: str, parsed: Query, sort: str, number: int) -> str:
    standing = standing_note(viewer)
    if parsed.every_term:
        query, results = _search(viewer, query, number)
        total = viewer.catalog.ask(count_listed, query) if results.is_more else results.total
        if not results.sessions:
            return standing + (_beyond(query, sort, number) if number > 1 else _nothing(viewer, query))
        plus = "+" if results.is_more else ""
        rows = "".join(_found_row(one.card, one.hits, one.more, query, plus) for one in results.sessions)
        return (
            f"{standing}{_count(total)}{_instead(results)}"
            f'<ol class="sessions">{rows}</ol>{_more(query, sort, number, is_more=results.next is not None)}'
        )
    cards = viewer.catalog.cards(query)
    if not cards:
        return standing + (_nothing(viewer, query) if query else _empty())
    if sort == "cost":
        cards.sort(key=lambda card: -card.cost_micros)
    elif sort == "turns":
        cards.sort(key=lambda card: -card.turns)
    page_cards = cards[(number - 1) * _ROWS : number * _ROWS]
    if not page_cards:
        return standing + _beyond(query, sort, number)
    rows = "".join(map(session_row, page_cards))
    is_more = number * _ROWS < len(cards)
    return (
        f"{standing}{_count(len(cards))}{_sorting(query, sort)}"
        f'<ol class="sessions">{rows}</ol>{_more(query, sort, number, is_more=is_more)}'
    )


def _search(viewer: Viewer, query: str, number: int) -> tuple[str, FoundPage]:
    """What fits; where nothing does, what has words that begin with the last one: it may be still being typed."""
    results = viewer.catalog.found(query, limit=_FOUND_ROWS, page=number, counted=_PLACES * number)
    is_near = bool(results.instead or results.missing)
    if (is_near or not results.sessions) and _TYPED.search(query):
        begun = viewer.catalog.found(f"{query}*", limit=_FOUND_ROWS, page=number, counted=_PLACES * number)
        if begun.sessions and not (begun.instead or begun.missing):
            return f"{query}*", begun
    return query, results


def _count(total: int) -> str:
    return f'<p class="count" data-testid="count" role="status">{count(total, "session")}</p>'


def _sorting(query: str, sort: str) -> str:
    items = "".join(
        link(_address(query, sort="" if key == "age" else key), text, current=key == sort)
        for key, text in SORTS.items()
    )
    return f'<p class="sorts">Sort by {items}</p>'


def _address(query: str, *, sort: str = "", page: int = 1) -> str:
    asked = {"q": query, "sort": "" if sort == "age" else sort, "page": page if page > 1 else ""}
    query = urlencode({key: value for key, value in asked.items() if value})
    return f"/?{query}" if query else "/"


def _more(query: str, sort: str, number: int, *, is_more: bool) -> str:
    back = "Newer" if sort == "age" else "Back"
    before = link(_address(query, sort=sort, page=number - 1), back) if number > 1 else ""
    after = link(_address(query, sort=sort, page=number + 1), "More") if is_more else ""
    return f'<p class="more">{before} {after}</p>' if before or after else ""


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────


def _found_row(card: Card, hits: Sequence[Hit], more: int, query: str, plus: str) -> str:
    title = next((marked(hit.snippet, hit.marks) for hit in hits if not hit.entry and card.title), "")
    places = "".join(_hit(card, hit, query) for hit in hits if hit.entry)
    rest = f'<li class="rest">{link(address_of(card.name, q=query), f"{more:,}{plus} more")}</li>' if more else ""
    below = f'<ol class="hits">{places}{rest}</ol>' if places or rest else ""
    return session_row(card, below=below, title=title)


def _hit(card: Card, hit: Hit, query: str) -> str:
    who = hit.tool or hit.role
    address = address_of(card.name, at=hit.seq or hit.entry, q=query)
    return (
        f'<li data-testid="hit"><a href="{esc(address)}"><span class="who">{esc(who)}</span> '
        f"{marked(hit.snippet, hit.marks)}</a></li>"
    )


def _instead(page: FoundPage) -> str:
    notes = [f"nothing has “{esc(word)}”: these have “{esc(other)}”" for word, other in page.instead]
    if page.missing:
        notes.append(f"nothing has all of the words: these lack {esc(', '.join(page.missing))}")
    if page.is_cut:
        notes.append("there is more text than was looked through: add a word, since: or workspace:")
    return "".join(f'<p class="note">{one}</p>' for one in notes)


# ── chips ─────────────────────────────────────────────────────────────────────────────────────────

_PART = re.compile(r'-?(?:[a-z]+:)?"(?:[^"\\]|\\.)*"?|\S+')


def parts_of(query: str) -> list[str]:
    """What was typed, part by part."""
    return _PART.findall(query)


def _chips(viewer: Viewer, asked: Query) -> str:
    rows = viewer.catalog.lines()
    is_here = any(row.workspace == viewer.folder for row in rows)
    chips = [("workspace", viewer.folder, "this folder")] if is_here else []
    chips += [("is", state, state) for state in ("running", "waiting") if any(row.state == state for row in rows)]
    chips += [("since", "today", "today"), ("since", "7d", "7 days")]
    agents = Counter(row.agent for row in rows if row.agent)
    chips += [("agent", name, name) for name, _ in agents.most_common(_CHIPS) if len(agents) > 1]
    projects = Counter(row.workspace for row in rows if row.workspace)
    folders = [folder for folder, _ in projects.most_common(_CHIPS) if len(projects) > 1 and folder != viewer.folder]
    names = Counter(PurePath(folder).name for folder in folders)
    chips += [("workspace", folder, _short(folder, names)) for folder in folders]
    if not rows:
        return ""
    links = "".join(_chip(Filter(name, (value,)), text, asked) for name, value, text in chips)
    return f'<nav class="chips" aria-label="Filters">{links}</nav>'


def _short(folder: str, names: Counter[str]) -> str:
    """The name of a folder; where another one is called the same, with the folder that it is in."""
    parts = PurePath(folder).parts
    return "/".join(parts[-2:] if names[parts[-1]] > 1 else parts[-1:]) or folder


def _chip(chosen: Filter, text: str, asked: Query) -> str:
    is_on = all(chosen in side.filters for side in asked.sides)
    rest = asked.without(chosen) if is_on else asked.within(chosen)
    pressed = ' aria-current="true"' if is_on else ""
    return f'<a href="{esc(_address(str(rest)))}"{pressed} title="{esc(str(Query((), (chosen,))))}">{esc(text)}</a>'


# ── nothing ───────────────────────────────────────────────────────────────────────────────────────


def _nothing(viewer: Viewer, query: str) -> str:
    parts = parts_of(query)
    ways: list[str] = []
    for number, part in enumerate(parts[:_PARTS]) if len(parts) > 1 else ():
        rest = " ".join(parts[:number] + parts[number + 1 :])
        try:
            fits = len(viewer.catalog.lines(rest))
        except Invalid:
            continue
        if fits:
            ways.append(f"<li>without {esc(part)}: {link(_address(rest), count(fits, 'session'))}</li>")
    other_queries = f"<ul>{''.join(ways)}</ul>" if ways else f"<p>{link('/', 'All sessions')}</p>"
    return f'{_count(0)}<div data-testid="empty"><p>Nothing fits <code>{esc(query)}</code>.</p>{other_queries}</div>'


def _beyond(query: str, sort: str, number: int) -> str:
    """A page after the last one: sessions that were on it may be gone."""
    first = link(_address(query, sort=sort), "the first page")
    return f'<p data-testid="empty">There is no page {number:,} of these sessions: {first}.</p>'


def _empty() -> str:
    """A machine without a session: where they were looked for."""
    from turnlog.formats import every
    from turnlog.machine.formatplaces import places_of

    rows: list[str] = []
    for name, form in every():
        homes = form.homes(places_of(None))
        rows.append(f"<li><b>{esc(name)}</b> {esc(', '.join(homes[:2]))}</li>")
    return (
        f'{_count(0)}<div data-testid="empty"><p>There is no session on this machine yet.</p><p>'
        f"These agents are known, and this is where their sessions were looked for:</p><ul>{''.join(rows)}</ul></div>"
    )


def _help() -> str:
    return f"<details><summary>What can be typed</summary><pre>{esc(HELP)}</pre></details>"
