"""What is said where there is no such page, where a session cannot be read, and where something broke."""

from __future__ import annotations

import re
import sys
import traceback
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse, PlainTextResponse, Response

from turnlog.errors import Conflict, Invalid, NotFound, TurnlogError
from turnlog.log.ids import word
from turnlog.web.frame import address_of, esc, link, page
from turnlog.web.viewer import Viewer

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import Route

ROUTES: list[Route] = []
_STATUS = ((NotFound, 404), (Invalid, 400), (Conflict, 409))
_NEAR = 5
_TYPED = re.compile("`([^`]+)`")


def _told(request: Request, heading: str, body: str, status: int) -> HTMLResponse:
    return page(request, heading, f"<h1>{esc(heading)}</h1>\n{body}", status=status)


async def told(request: Request, error: Exception) -> Response:
    """What the library says, and what to do next."""
    assert isinstance(error, TurnlogError)
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    if request.method == "POST":
        return PlainTextResponse(f"{error.message}\n", status)
    told = _TYPED.sub(r"<code>\1</code>", esc(error.hint or ""))
    hint = f"<p>{told}</p>" if told else ""
    heading = "No such session" if status == 404 else "That did not work"
    near = _nearest(request) if status == 404 else ""
    return _told(request, heading, f'<p role="alert">{esc(error.message)}</p>{hint}{near}', status)


def _nearest(request: Request) -> str:
    """Sessions that are called like what was asked for."""
    from turnlog.catalog.index.terms import distance

    name = str(request.path_params.get("name", "")).replace("%2F", "/")[:80]
    viewer: Viewer = request.app.state.viewer
    if not name:
        return ""
    found: list[tuple[int, str, str]] = []
    for row in viewer.catalog.lines():
        short = row.name.rpartition(":")[2]
        near = min(distance(name, row.name, 3), distance(name, short[: len(name)], 3))
        if near <= 3 or name in row.name:
            found.append((near, row.name, row.title))
    rows = "".join(f"<li>{link(address_of(one), one)} {esc(title)}</li>" for _, one, title in sorted(found)[:_NEAR])
    return f"<p>Perhaps one of these:</p><ul>{rows}</ul>" if rows else f"<p>{link('/', 'All sessions')}</p>"


async def missing(request: Request, error: Exception) -> Response:
    """No such page, or a method that nothing takes."""
    status = getattr(error, "status_code", 404)
    if status == 404:
        return _told(request, "No such page", f'<p role="alert">There is nothing at {esc(request.url.path)}.</p>'
                     f"<p>{link('/', 'All sessions')}</p>", 404)  # fmt: skip
    return PlainTextResponse(f"{getattr(error, 'detail', 'refused')}\n", status)


async def left(request: Request, error: Exception) -> Response:
    """Nobody waits for the page any more."""
    return Response(status_code=499)


async def unexpected(request: Request, error: Exception) -> Response:
    """Something broke: a code for the page, all of it where the server was started."""
    code = word(8)
    print(f"turnlog web: error {code} at {request.url.path}", file=sys.stderr)
    traceback.print_exception(error, file=sys.stderr)
    body = (
        f'<p role="alert">Something broke. Its code is <code>{code}</code>; under that the terminal in which '
        "<code>turnlog web</code> runs says more.</p><p>Nothing was changed. "
        f"{link('/', 'All sessions')}</p>"
    )
    return _told(request, "Something broke", body, 500)
