"""A session to take along, `/s/NAME/export?to=html`: without its secrets, unless asked for with them."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from turnlog.errors import Invalid
from turnlog.reader.document import ENDINGS, write
from turnlog.reader.opener import SessionOpener
from turnlog.web.viewer import name_in, viewer_of

_KINDS = {"html": "text/html", "markdown": "text/markdown", "json": "application/json", "jsonl": "application/jsonl"}


def give(request: Request) -> Response:
    """The document, as a download."""
    viewer = viewer_of(request)
    form = request.query_params.get("to", "html")
    if form not in _KINDS:
        raise Invalid(f"no export to {form!r:.40}", hint=f"to {', '.join(_KINDS)}")
    card = viewer.card(name_in(request))
    is_redacted = request.query_params.get("redact") != "0"
    with SessionOpener(viewer.location).read(card.id if card.is_ours else card.name) as opened:
        data = write(opened, form, is_redacted=is_redacted).data
    name = re.sub(r"[^A-Za-z0-9._-]", "-", card.name)[:80]
    return Response(data, headers={
        "Content-Type": f"{_KINDS[form]}; charset=utf-8",
        "Content-Disposition": f'attachment; filename="{name}.{ENDINGS[form]}"',
    })  # fmt: skip


ROUTES = [Route("/s/{name}/export", give)]
