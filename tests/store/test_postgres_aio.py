"""Five hundred sessions of one process append at once, over a few connections, and the loop goes on meanwhile."""

import asyncio
import uuid

from tests.pgserver import Server
from turnlog import aio


def test_five_hundred_sessions_append_at_once(postgres: Server):
    turns = 0

    async def tick() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def work(home: aio.Home, number: int) -> list[str]:
        session = await home.create(id=f"s{number}")
        for text in ("one", "two"):
            await session.user(f"{number} {text}")
        return [message.blocks[0].text for message in await session.messages()]

    async def run() -> list[list[str]]:
        async with await aio.open(f"{postgres.url}?tenant={uuid.uuid4()}") as home:
            ticking = asyncio.create_task(tick())
            done = await asyncio.gather(*(work(home, number) for number in range(500)))
            ticking.cancel()
            assert len(await home.sessions()) == 500
            return done

    assert asyncio.run(run()) == [[f"{number} one", f"{number} two"] for number in range(500)]
    assert turns > 500
