"""The same for code with an event loop."""

import asyncio
from pathlib import Path

import turnlog
from tests.moving.scene import everything
from turnlog import aio


def test_homes_are_moved_from_an_event_loop(tmp_path: Path):
    async def main() -> None:
        async with aio.open(tmp_path / "a") as here, aio.open(tmp_path / "b") as there:
            session = await here.create(id="s")
            await session.user("one")
            [row] = await here.push(there, ["s"])
            assert row.outcome == "new"
            other = await there.resume("s")
            await other.user("two")
            [row] = await here.pull(there)
            assert row.outcome == "grown"
            pushed, pulled = await here.sync(there, dry_run=True)
            assert [row.outcome for row in (*pushed, *pulled)] == ["same", "same"]
            with turnlog.open(tmp_path / "c") as blocking:
                await here.push(blocking)
                assert everything(blocking) == everything(here._blocking)

    asyncio.run(main())
