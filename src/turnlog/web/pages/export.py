"""A session to take along, `/s/NAME/export?to=html`: without its secrets, unless asked for with them."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from turnlog.errors import Invalid
from turnlog.reader.export.document import ENDINGS, write
from turnlog.reader.opening.opener import OpenedSession, SessionOpener
from turnlog.web.viewer import Viewer, name_in, viewer_of

if TYPE_CHECKING:
    from turnlog.catalog import Card

_KINDS = {"html": "text/html", "markdown": "text/markdown", "json": "application/json", "jsonl": "application/jsonl"}


def give(request: Request) -> Response:
    """The document, as a download."""
    viewer = viewer_of(request)
    form = request.query_params.get("to", "html")
    if form not in _KINDS:
        raise Invalid(f"no export to {form!r:.40}", hint=f"to {', '.join(_KINDS)}")
    card = viewer.desk.card(name_in(request))
    is_redacted = request.query_params.get("redact") != "0"
    with _opened(viewer, card) as opened:
        data = write(opened, form, is_redacted=is_redacted).data
    name = re.sub(r"[^A-Za-z0-9._-]", "-", card.name)[:80]
    return Response(data, headers={
        "Content-Type": f"{_KINDS[form]}; charset=utf-8",
        "Content-Disposition": f'attachment; filename="{name}.{ENDINGS[form]}"',
    })  # fmt: skip


@contextmanager
def _opened(viewer: Viewer, card: Card) -> Generator[OpenedSession]:
    if not card.is_ours:
        with SessionOpener(viewer.location).read(card.name) as opened:
            yield opened
        return
    viewer.open(card.name)  # brings in what its agent said since, unless nothing may be changed
    with viewer.home.read(card.id) as session:
        yield OpenedSession(viewer.home, session)


ROUTES = [Route("/s/{name}/export", give)]
