"""Carries out what a page asks for by POST: a change of a session, on a thread that the server waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from turnlog.errors import Invalid
from turnlog.web.viewer import Viewer, check_ours, name_in, viewer_of

if TYPE_CHECKING:
    from turnlog.catalog import Card

_T = TypeVar("_T", bound=msgspec.Struct)
Answer = dict[str, str]
"""What the script of the page is told."""


def decoded(body: bytes, kind: type[_T]) -> _T:
    """What a page said, or `Invalid`."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise Invalid(f"that is not what this takes: {error}") from None


async def apply_change(request: Request, change: Callable[[Viewer, Card], Answer], *, own: bool = True) -> Response:
    """Change a session, with `own` one of ours, on a thread that the server waits for; answer with the result."""
    viewer = viewer_of(request)

    def work() -> Answer:
        card = viewer.desk.card(name_in(request))
        if own:
            check_ours(card)
        return change(viewer, card)

    return JSONResponse(await asyncio.get_running_loop().run_in_executor(viewer.change_executor, work))
