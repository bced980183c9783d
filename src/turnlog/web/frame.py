"""The frame of every page: its head, the bar above it, the pages of a session, how far the index is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse

from turnlog.web.address import address_of
from turnlog.web.element import esc, link
from turnlog.web.viewer import viewer_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from turnlog.web.viewer import Viewer

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
    theme_attribute = f' data-theme="{theme}"' if theme in THEMES[1:] else ""
    viewer = viewer_of(request)
    token = "" if viewer.is_read_only else f'<meta name="turnlog-token" content="{viewer.page_token}">\n'
    return HTMLResponse(
        f'<!doctype html>\n<html lang="en"{theme_attribute}>\n<head>\n<meta charset="utf-8">\n'
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


def tabs(name: str, here: str, *, is_ours: bool, conversation: str = "") -> str:
    """The pages of a session. `conversation` is the address of the first one, if it is shown in a special way."""
    pages = [("", "Conversation"), ("changes", "Changes"), ("tree", "Tree"), ("stats", "Stats")]
    visible_pages = [one for one in pages if is_ours or one[0] != "changes"]
    items = "".join(
        link((not key and conversation) or address_of(name, key), text, current=key == here)
        for key, text in visible_pages
    )
    return f'<nav class="tabs" aria-label="This session">{items}</nav>'


def standing_note(viewer: Viewer) -> str:
    """How far the index is, while it is made."""
    standing = viewer.catalog.standing()
    if not standing.pending:
        return ""
    text = f"{standing.indexed:,} of {standing.sessions:,} sessions are read so far, the newest first."
    return f'<p class="note" role="status">{text} The others come by themselves.</p>'
