"""Many sessions of one process on one event loop, over a few connections; and the loop goes on meanwhile."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest

import turnlog
from tests.pgserver import Server
from turnlog import aio
from turnlog.session.interior import interior

COUNT = 500


@pytest.fixture
def location(postgres: Server) -> str:
    return f"{postgres.url}?tenant={uuid.uuid4()}"


class Ticker:
    """Counts how often the loop came round."""

    def __init__(self) -> None:
        self.turns = 0

    @asynccontextmanager
    async def ticking(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._tick())
        yield
        task.cancel()

    async def _tick(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)


def test_five_hundred_sessions_append_at_once(location: str):
    ticker = Ticker()

    async def work(home: aio.Home, number: int) -> list[str]:
        session = await home.create(id=f"s{number}")
        for text in ("one", "two"):
            await session.user(f"{number} {text}")
        return [message.blocks[0].text for message in await session.messages()]

    async def run() -> list[list[str]]:
        async with await aio.open(location) as home:
            async with ticker.ticking():
                done = await asyncio.gather(*(work(home, number) for number in range(COUNT)))
            assert len(await home.sessions()) == COUNT
            return done

    assert asyncio.run(run()) == [[f"{number} one", f"{number} two"] for number in range(COUNT)]
    assert ticker.turns > COUNT


def test_the_loop_goes_on_while_five_hundred_appends_wait_for_the_server(postgres: Server, location: str):
    """Nobody gets any further until the server lets go; the loop comes round ten thousand times meanwhile."""

    async def run() -> None:
        async with await aio.open(location) as home:
            sessions = [await home.create(id=f"s{number}") for number in range(COUNT)]
            with psycopg.connect(postgres.url, autocommit=True) as admin:
                ticker, done = Ticker(), []
                with admin.transaction():
                    admin.execute("lock table turnlog.session in exclusive mode")
                    tasks = [asyncio.create_task(session.user("x")) for session in sessions]
                    for task in tasks:
                        task.add_done_callback(done.append)
                    async with ticker.ticking():
                        while ticker.turns < 10_000:
                            await asyncio.sleep(0)
                    assert not done
                entries = await asyncio.gather(*tasks)
                assert [entry.blocks[0].text for entry in entries] == ["x"] * COUNT

    asyncio.run(run())


def test_many_follow_without_a_thread_each_and_are_told(location: str, monkeypatch: pytest.MonkeyPatch):
    """More than there are threads, none of which looks for himself: what comes, comes by a message."""
    monkeypatch.setattr("turnlog.aio.session.LOOK_S", 3600.0)
    count = 40

    async def follow(session: aio.Session) -> list[str]:
        texts: list[str] = []
        async for entry in session.follow(after=0):
            if isinstance(entry, turnlog.Note):
                texts.append(entry.text)
                if len(texts) == 2:
                    return texts
        raise AssertionError("it ended")

    async def run() -> None:
        async with await aio.open(location) as home, await aio.open(location) as other:
            sessions = [await home.create(id=f"s{number}") for number in range(count)]
            tasks = [asyncio.create_task(follow(await other.resume(f"s{number}"))) for number in range(count)]
            listener = interior(other._blocking).store._watch.listener
            while len(listener.watched) < count:
                await asyncio.sleep(0.01)
            for session in sessions:
                await session.note("one")
                await session.note("two")
            assert await asyncio.gather(*tasks) == [["one", "two"]] * count
            assert not listener._callbacks

    asyncio.run(run())


def test_following_ends_when_the_session_is_closed(location: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("turnlog.aio.session.LOOK_S", 3600.0)

    async def run() -> list[int]:
        async with await aio.open(location) as home:
            session = await home.create(id="s")
            seen: list[int] = []

            async def follow() -> None:
                async for entry in session.follow(after=0):
                    seen.append(entry.seq)

            task = asyncio.create_task(follow())
            while not seen:
                await asyncio.sleep(0.01)
            await session.close()
            await task
            return seen

    assert asyncio.run(run()) == [1]
