"""What can be typed and pressed, `/help`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from turnlog.catalog.ask.query import HELP
from turnlog.web.element import esc, table
from turnlog.web.frame import page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

KEYS = (
    ("/", "search"),
    ("j k, ↓ ↑", "the next and the one before: sessions in the list, messages in a session"),
    ("Enter", "open what is chosen"),
    ("[ ]", "the prompt before and the next prompt"),
    ("n N", "the next place that was found, and the one before"),
    ("Home End", "the ends of a session"),
    ("u", "back to the list"),
    ("?", "this help"),
    ("Escape", "close it, or leave the field"),
)


def show(request: Request) -> Response:
    """The page about keys; the script also shows them on top of any other page."""
    rows = [(f"<kbd>{esc(keys)}</kbd>", esc(what)) for keys, what in KEYS]
    body = (
        f'<h1>Help</h1><div id="keys">{table(("Key", "does"), rows, caption="Keys")}</div>'
        f"<h2>What can be typed to find something</h2><pre>{esc(HELP)}</pre>"
        "<h2>From the terminal</h2><p><code>turnlog web k3f9</code> opens a session, "
        "<code>turnlog web --read-only</code> changes nothing, <code>turnlog --help</code> lists the rest.</p>"
    )
    return page(request, "Help · turnlog", body, kind="help")


ROUTES = [Route("/help", show)]
