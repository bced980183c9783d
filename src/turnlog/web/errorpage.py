"""What a page says where something is missing, where a session cannot be read, and where something broke."""

from __future__ import annotations

import re
import sys
import traceback
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse, PlainTextResponse, Response

from turnlog.catalog.waiter import GivenUp
from turnlog.errors import Ambiguous, Conflict, Invalid, NotFound, TurnlogError
from turnlog.log.ids import word
from turnlog.web.address import address_of
from turnlog.web.element import esc, link
from turnlog.web.frame import page
from turnlog.web.viewer import Viewer, name_in, viewer_of

if TYPE_CHECKING:
    from starlette.requests import Request

_STATUS = ((NotFound, 404), (Invalid, 400), (Conflict, 409))
_GONE = 499
"""The client closed the connection: nobody reads the answer."""
_NEAR = 5
_TYPED = re.compile("`([^`]+)`")


def _error_page(request: Request, heading: str, body: str, status: int) -> HTMLResponse:
    return page(request, heading, f"<h1>{esc(heading)}</h1>\n{body}", status=status)


def library_error(request: Request, error: Exception) -> Response:
    """Says what the library says, and what to do next. It asks the catalog, so it runs on a thread, not on the loop."""
    assert isinstance(error, TurnlogError)
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    if request.method == "POST":
        return PlainTextResponse(f"{error.message}\n", status)
    hint = _TYPED.sub(r"<code>\1</code>", esc(error.hint or ""))
    hint_html = f"<p>{hint}</p>" if hint else ""
    try:
        name = _missing_session(request) if status == 404 else ""
        near = _nearest(viewer_of(request), name[:80]) if name else ""
    except GivenUp:
        return Response(status_code=_GONE)
    heading = "That did not work"
    if status == 404:
        heading = "Several sessions" if isinstance(error, Ambiguous) else "No such session" if name else "Not found"
    return _error_page(request, heading, f'<p role="alert">{esc(error.message)}</p>{hint_html}{near}', status)


def _missing_session(request: Request) -> str:
    """The name in an address under which there is no session; empty if something else is missing."""
    asked = request.query_params
    names = [name_in(request)] if "name" in request.path_params else [asked.get("a"), asked.get("b")]
    for name in filter(None, names):
        try:
            viewer_of(request).catalog.find(name)
        except NotFound:
            return name
    return ""


def _nearest(viewer: Viewer, name: str) -> str:
    """Sessions that are called like what was asked for."""
    from turnlog.catalog.index.terms import distance

    nearest: list[tuple[int, str, str]] = []
    for row in viewer.catalog.lines():
        short = row.name.rpartition(":")[2]
        near = min(distance(name, row.name, 3), distance(name, short[: len(name)], 3))
        if near <= 3 or name in row.name:
            nearest.append((near, row.name, row.title))
    rows = "".join(
        f"<li>{link(address_of(one), one)}<small>{esc(title)}</small></li>" for _, one, title in sorted(nearest)[:_NEAR]
    )
    return (
        f'<p>Perhaps one of these:</p><ul class="tree">{rows}</ul>' if rows else f"<p>{link('/', 'All sessions')}</p>"
    )


async def missing(request: Request, error: Exception) -> Response:
    """Says that there is no such page, or that nothing takes this method."""
    status = getattr(error, "status_code", 404)
    if status == 404:
        return _error_page(request, "No such page", f'<p role="alert">There is nothing at {esc(request.url.path)}.</p>'
                     f"<p>{link('/', 'All sessions')}</p>", 404)  # fmt: skip
    return PlainTextResponse(f"{getattr(error, 'detail', 'refused')}\n", status)


async def cancelled(request: Request, error: Exception) -> Response:
    """Answers a request that nobody waits for any more."""
    return Response(status_code=_GONE)


async def unexpected(request: Request, error: Exception) -> Response:
    """Says that something broke: a code on the page, all of it where the server was started."""
    code = word(8)
    print(f"turnlog web: error {code} at {request.url.path}", file=sys.stderr)
    traceback.print_exception(error, file=sys.stderr)
    if request.method == "POST":
        message = f"something broke: error {code}, see the terminal of `turnlog web`; reload to see what was done\n"
        return PlainTextResponse(message, 500)
    body = (
        f'<p role="alert">Something broke: error <code>{code}</code>. The terminal in which <code>turnlog web</code> '
        f"runs says more.</p><p>{link('/', 'All sessions')}</p>"
    )
    return _error_page(request, "Something broke", body, 500)
