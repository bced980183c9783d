"""Cancels what is read for a client that closed its connection; what changes something runs to its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from turnlog.catalog.waiter import Waiter

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class CancelOnDisconnect:
    """Cancels a request that only reads when its client disconnects. One that changes something runs to its end."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] == "POST":
            await self._app(scope, receive, send)
            return
        waiter, disconnected = Waiter(), asyncio.Event()

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            waiter.leave()
            disconnected.set()

        async def receive_disconnect() -> Message:
            await disconnected.wait()
            return {"type": "http.disconnect"}

        watching = asyncio.create_task(watch())
        try:
            with waiter.waiting():
                await self._app(scope, receive_disconnect, send)
        finally:
            watching.cancel()
