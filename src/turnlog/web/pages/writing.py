"""What can be changed in a session: its title; of ours also a fork of it, the trash. All of it is asked for by POST."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from turnlog.errors import Invalid
from turnlog.reader.markable import MarkableSession
from turnlog.web.frame import address_of
from turnlog.web.viewer import Viewer, name_in, viewer_of

if TYPE_CHECKING:
    from turnlog.catalog import Card

_T = TypeVar("_T", bound=msgspec.Struct)
Answer = dict[str, str]


class _Title(msgspec.Struct):
    title: str


class _Fork(msgspec.Struct):
    at: int


async def title(request: Request) -> Response:
    """Another title, whosever it is: of another agent's, our home says it."""
    given = decoded(await request.body(), _Title)
    text = given.title.strip()
    if not text or len(text) > 500 or "\0" in text:
        raise Invalid("a title is a line of at most 500 characters")
    return await changed(request, lambda viewer, card: _set_title(viewer, card, " ".join(text.split())), own=False)


async def fork(request: Request) -> Response:
    """Go on from a message, in a session of its own."""
    given = decoded(await request.body(), _Fork)
    return await changed(request, lambda viewer, card: _forked(viewer, card, given.at))


async def delete(request: Request) -> Response:
    """Into the trash."""
    await request.body()
    return await changed(request, _deleted)


def decoded(body: bytes, kind: type[_T]) -> _T:
    """What a page said, or `Invalid`."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise Invalid(f"that is not what this takes: {error}") from None


async def changed(request: Request, change: Callable[[Viewer, Card], Answer], *, own: bool = True) -> Response:
    """Change a session, with `own` one of ours, in a thread, and answer with what came of it."""

    def work() -> Answer:
        viewer = viewer_of(request)
        card = viewer.card(name_in(request))
        if own and not card.is_ours:
            raise Invalid(f"{card.name} is a session of {card.agent}, which is only read",
                          hint=f"`turnlog import {card.name}` imports it first")  # fmt: skip
        return change(viewer, card)

    return JSONResponse(await run_sync(work))


def _set_title(viewer: Viewer, card: Card, text: str) -> Answer:
    if card.is_ours:
        with viewer.home.resume(card.id) as session:
            MarkableSession(viewer.home, session).call(text)
    else:
        MarkableSession(viewer.home, None, card).call(text)
    viewer.catalog.sync()
    return {"title": text}


def _forked(viewer: Viewer, card: Card, at: int) -> Answer:
    with viewer.home.resume(card.id) as session, session.fork(at=at) as made:
        name = made.handle
    viewer.catalog.sync()
    return {"address": address_of(name)}


def _deleted(viewer: Viewer, card: Card) -> Answer:
    viewer.home.delete(card.id)
    viewer.catalog.sync()
    return {"address": "/", "told": f"deleted; `turnlog restore {card.name}` brings it back"}


ROUTES = [
    Route("/s/{name}/title", title, methods=["POST"]),
    Route("/s/{name}/fork", fork, methods=["POST"]),
    Route("/s/{name}/delete", delete, methods=["POST"]),
]
