"""Changes of a session: its title; of ours also a fork of it, the trash. All of them are asked for by POST."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from turnlog.errors import Invalid
from turnlog.reader.markable import ForeignMarkable, OwnMarkable
from turnlog.web.address import address_of
from turnlog.web.change import Answer, apply_change, decoded
from turnlog.web.viewer import Viewer

if TYPE_CHECKING:
    from turnlog.catalog import Card


class _Title(msgspec.Struct):
    title: str


class _Fork(msgspec.Struct):
    at: int


async def title(request: Request) -> Response:
    """Set the title; for a session of another agent it is kept in our home."""
    given = decoded(await request.body(), _Title)
    text = given.title.strip()
    if not text or len(text) > 500 or "\0" in text:
        raise Invalid("a title is a line of at most 500 characters")
    return await apply_change(request, lambda viewer, card: _set_title(viewer, card, " ".join(text.split())), own=False)


async def fork(request: Request) -> Response:
    """Go on from a message, in a session of its own."""
    given = decoded(await request.body(), _Fork)
    return await apply_change(request, lambda viewer, card: _forked(viewer, card, given.at))


async def delete(request: Request) -> Response:
    """Into the trash."""
    await request.body()
    return await apply_change(request, _deleted)


def _set_title(viewer: Viewer, card: Card, text: str) -> Answer:
    if card.is_ours:
        with viewer.home.resume(card.id) as session:
            OwnMarkable(session).set_title(text)
    else:
        ForeignMarkable(viewer.home, card).set_title(text)
    viewer.catalog.sync()
    return {"title": text}


def _forked(viewer: Viewer, card: Card, at: int) -> Answer:
    with viewer.home.resume(card.id) as session, session.fork(at=at) as forked:
        OwnMarkable(forked).archive(False)  # somebody goes on with it, whatever became of the other
        name = forked.handle
    viewer.catalog.sync()
    return {"address": address_of(name)}


def _deleted(viewer: Viewer, card: Card) -> Answer:
    viewer.home.delete(card.id)
    viewer.catalog.sync()
    return {"address": "/"}


ROUTES = [
    Route("/s/{name}/title", title, methods=["POST"]),
    Route("/s/{name}/fork", fork, methods=["POST"]),
    Route("/s/{name}/delete", delete, methods=["POST"]),
]
