"""Who leaves before the answer is there: what is only read for nobody is given up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from turnlog.catalog.waiter import Waiter

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class LeavingVisitors:
    """Watches whether whoever asked is still there. What changes something is carried out all the same."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or scope["method"] == "POST":
            await self._app(scope, receive, send)
            return
        waiter, left = Waiter(), asyncio.Event()

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            waiter.leave()
            left.set()

        async def told() -> Message:
            await left.wait()
            return {"type": "http.disconnect"}

        watching = asyncio.create_task(watch())
        try:
            with waiter.waiting():
                await self._app(scope, told, send)
        finally:
            watching.cancel()
