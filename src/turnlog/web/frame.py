"""The frame of every page, and the small pieces that pages are made of. All text goes through `esc`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from starlette.responses import HTMLResponse

from turnlog.view.html import HtmlRows
from turnlog.web.viewer import viewer_of

if TYPE_CHECKING:
    from starlette.requests import Request

_plain = HtmlRows().plain


@lru_cache(maxsize=20_000)
def esc(text: str) -> str:
    """Text that means nothing to HTML, nor in an attribute. Names and titles are asked for again and again."""
    return _plain(text)


THEMES = ("system", "light", "dark")


def page(
    request: Request,
    title: str,
    body: str,
    *,
    query: str = "",
    here: str = "",
    kind: str = "",
    status: int = 200,
) -> HTMLResponse:
    """A whole page. `here` is the address of the part that it belongs to."""
    theme = request.cookies.get("turnlog-theme", "")
    shown = f' data-theme="{theme}"' if theme in THEMES[1:] else ""
    viewer = viewer_of(request)
    token = "" if viewer.is_read_only else f'<meta name="turnlog-token" content="{viewer.page_token}">\n'
    return HTMLResponse(
        f'<!doctype html>\n<html lang="en"{shown}>\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{esc(title)}</title>\n{token}"
        '<link rel="icon" href="/static/icon.svg" type="image/svg+xml">\n'
        '<link rel="stylesheet" href="/static/style.css">\n<script src="/static/script.js" defer></script>\n</head>\n'
        f'<body class="{kind}">\n{_bar(query, here)}\n<main id="main">\n{body}\n</main>\n'
        '<p id="waiting" role="status" hidden></p>\n</body>\n</html>\n',
        status,
    )


def _bar(query: str, here: str) -> str:
    def item(address: str, text: str) -> str:
        return link(address, text, current=address == here)

    return (
        '<a class="skip" href="#main">Skip to the content</a>'
        f'<header class="bar"><nav aria-label="Pages"><a class="name" href="/">turnlog</a>{item("/", "Sessions")}'
        f"{item('/usage', 'Usage')}</nav>"
        '<form action="/" method="get" role="search"><label class="unseen" for="q">Search sessions</label>'
        f'<input id="q" name="q" type="search" role="searchbox" data-testid="search" value="{esc(query)}" '
        'placeholder="Search everything that was said" autocomplete="off" spellcheck="false"></form>'
        '<button type="button" class="theme" data-action="theme" hidden>Theme</button>'
        '<a class="help" href="/help" data-action="help" aria-label="Help">?</a></header>'
    )


def link(address: str, text: str, *, current: bool = False, kind: str = "") -> str:
    """A link whose text is made safe."""
    more = ' aria-current="page"' if current else ""
    more += f' class="{kind}"' if kind else ""
    return f'<a href="{esc(address)}"{more}>{esc(text)}</a>'


def button(text: str, action: str, *, command: str = "", at: int = 0, testid: str = "") -> str:
    """What the script carries out; without one it is not shown."""
    more = f' data-testid="{testid}"' if testid else ""
    more += f' data-command="{esc(command)}"' if command else ""
    more += f' data-at="{at}"' if at else ""
    return f'<button type="button" class="needs-script" data-action="{action}"{more}>{esc(text)}</button>'


@lru_cache(maxsize=5_000)
def _quoted(name: str) -> str:
    return quote(name, safe="")


def address_of(name: str, page: str = "", /, **query: object) -> str:
    """The address of a session, or of a page of it."""
    place = f"/s/{_quoted(name)}" + (f"/{page}" if page else "")
    asked = {key: value for key, value in query.items() if value not in (None, "")}
    return place + (f"?{urlencode(asked)}" if asked else "")


def facts(items: Iterable[str]) -> str:
    """A line of facts, each of them HTML."""
    told = "".join(f"<li>{item}</li>" for item in items if item)
    return f'<ul class="facts">{told}</ul>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str, right: Sequence[int] = ()) -> str:
    """A table of cells that are HTML; `right` are the columns of numbers."""
    sides = [' class="right"' if number in right else "" for number in range(len(head))]
    top = "".join(f'<th scope="col"{side}>{esc(cell)}</th>' for side, cell in zip(sides, head, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{side}>{cell}</td>" for side, cell in zip(sides, row, strict=True)) + "</tr>\n"
        for row in rows
    )
    return (
        f'<div class="table" tabindex="0" role="group" aria-label="{esc(caption)}"><table><caption>{esc(caption)}'
        f"</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def age(ms: int | None, now: datetime | None = None) -> str:
    """How long ago, in two characters or three; a time in the future is told as a day."""
    if not ms:
        return ""
    seconds = (time.time() if now is None else now.timestamp()) - ms / 1000
    if seconds < -60:
        return moment(ms)[:10]
    for size, unit in ((60, "s"), (60, "m"), (24, "h"), (7, "d")):
        if seconds < size:
            return "now" if unit == "s" else f"{int(seconds)}{unit}"
        seconds /= size
    return f"{int(seconds)}w" if seconds < 9 else moment(ms)[:10]


@lru_cache(maxsize=5_000)
def moment(ms: int | None) -> str:
    """A time, for people here."""
    return "" if not ms else datetime.fromtimestamp(ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M")


def when(ms: int | None) -> str:
    """How long ago, with the time beside it for who points at it."""
    if not ms:
        return ""
    return f'<time datetime="{_iso(ms)}" title="{moment(ms)}">{age(ms)}</time>'


@lru_cache(maxsize=5_000)
def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")


def tabs(name: str, here: str, *, is_ours: bool) -> str:
    """The pages of a session."""
    pages = [("", "Conversation"), ("changes", "Changes"), ("tree", "Tree"), ("stats", "Stats")]
    shown = [one for one in pages if is_ours or one[0] != "changes"]
    items = "".join(link(address_of(name, key), text, current=key == here) for key, text in shown)
    return f'<nav class="tabs" aria-label="This session">{items}</nav>'
