"""What only the asynchronous face promises: the loop is never blocked, and a cancelled call leaves no doubt."""

import asyncio
import contextlib
import inspect
import threading
import time
import warnings

import pytest

import turnlog
from turnlog import aio
from turnlog import session as blocking
from turnlog.layout import LISTENING
from turnlog.store import files
from turnlog.store.files.disk import Disk
from turnlog.wire import anthropic

SLOW_S = 0.3


class SlowDisk(Disk):
    """Every sync takes a third of a second, and says on which thread it happened."""

    def __init__(self):
        self.slow = True
        self.threads = set()
        self.syncs = 0

    def sync(self, fd):
        self.threads.add(threading.get_ident())
        self.syncs += 1
        if self.slow:
            time.sleep(SLOW_S)
        super().sync(fd)

    def __getattribute__(self, name):
        if name in ("open", "pread", "write", "stat", "listdir", "link", "rename", "lock"):
            object.__getattribute__(self, "threads").add(threading.get_ident())
        return object.__getattribute__(self, name)


@pytest.fixture
def disk(monkeypatch):
    """The disk of every home opened in this test."""
    disk = SlowDisk()
    connect = files.connect
    monkeypatch.setattr(files, "connect", lambda place, **options: connect(place, disk=disk, **options))
    return disk


async def ticking(work):
    """Run the work, and count how often the loop got its turn meanwhile, every hundredth of a second."""
    ticks = 0
    worst = 0.0
    task = asyncio.ensure_future(work)
    while not task.done():
        begin = time.monotonic()
        await asyncio.sleep(0.01)
        worst = max(worst, time.monotonic() - begin)
        ticks += 1
    await task
    return ticks, worst


def test_the_loop_is_never_blocked_while_the_disk_is_slow(tmp_path, disk):
    async def work(home):
        session = await home.create(title="slow")
        async with session.turn():
            ask = await session.user("one")
            await session.assistant("x" * 100_000, usage=turnlog.Usage(input_tokens=1))
        await session.set("title", "slower")
        await session.fork()
        await session.rewind(to=ask)

    async def main():
        async with aio.open(tmp_path / "home") as home:
            begin = time.monotonic()
            ticks, worst = await ticking(work(home))
            spent = time.monotonic() - begin
        assert spent > 6 * SLOW_S
        assert ticks > spent / 0.01 / 3
        assert worst < SLOW_S / 2

    asyncio.run(main())
    assert disk.syncs > 6


def test_no_disk_is_touched_on_the_loops_thread(tmp_path, disk):
    disk.slow = False

    async def main():
        async with aio.open(tmp_path / "home") as home:
            session = await home.create(title="t", workspace=tmp_path)
            ask = await session.user("one")
            await session.tool_result("1", "x" * 100_000)
            await session.set("k", 1)
            async with session.turn():
                await session.note("n")
            assert "message" in [entry.type async for entry in session.entries()]
            await session.messages()
            await session.context()
            await session.pending()
            await session.usage()
            await session.stats()
            await session.branches()
            await session.damage
            await session.find(ask.id)
            await session.get("k")
            fork = await session.fork()
            await fork.user("two")
            child = await session.spawn(agent="a")
            await session.children()
            await session.compact("sum", keep=1)
            await session.uncompact()
            await session.edit(ask, "x")
            await session.rewind(to=ask)
            await session.undo()
            await session.redo()
            await session.unset("k")
            await session.spend(turnlog.Usage(input_tokens=1))
            await session.refresh()
            _ = (session.id, session.handle, session.head, session.seq, session.title, session.facts, session.workspace)
            async for entry in session.follow(after=0):
                assert entry.seq == 1
                break
            await home.sessions()
            await home.health()
            name = await home.put_blob(b"blob")
            await home.get_blob(name)
            await home.delete(child.id)
            await home.restore(child.id)
            await home.purge(child.id)
            other = await home.resume(session.id)
            async with other:
                await other.messages()

    asyncio.run(main())
    assert disk.threads
    assert threading.get_ident() not in disk.threads


def test_many_tasks_append_at_once_and_share_syncs(tmp_path, disk):
    async def main():
        async with aio.open(tmp_path / "home") as home:
            session = await home.create()
            await session.note("first")
            before, begin = disk.syncs, time.monotonic()
            await asyncio.gather(*(session.tool_result(str(index), "x") for index in range(8)))
            assert time.monotonic() - begin < 6 * SLOW_S
            assert disk.syncs - before < 8
            assert len(await session.messages()) == 8

    asyncio.run(main())


@pytest.mark.parametrize("after_s", [0.0, 0.05, 0.15])
def test_a_cancelled_append_leaves_object_and_log_agreeing(tmp_path, disk, after_s):
    async def main():
        async with aio.open(tmp_path / "home") as home:
            session = await home.create()
            await session.user("one")
            draft = turnlog.Message(role="user", blocks=[turnlog.Text(text="two")])
            task = asyncio.ensure_future(session.append(draft))
            await asyncio.sleep(after_s)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(0)
            retried = await session.append(draft)
            three = await session.user("three")
            assert three.parent == retried.seq
            texts = [message.blocks[0].text for message in await session.messages()]
            assert texts == ["one", "two", "three"]
            fresh = await home.resume(session.id)
            assert await fresh.messages() == await session.messages()
            assert (fresh.head, fresh.seq) == (session.head, session.seq)
            assert await session.damage == []

    asyncio.run(main())


def test_a_cancelled_task_aborts_its_turn(tmp_path, disk):
    disk.slow = False

    async def main():
        async with aio.open(tmp_path / "home") as home:
            session = await home.create()

            async def work():
                async with session.turn():
                    await session.user("one")
                    await asyncio.sleep(60)

            task = asyncio.ensure_future(work())
            while not await session.messages():
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            states = [entry.state async for entry in session.entries(kind="turn")]
            assert states == ["begin", "aborted"]
            async with session.turn():
                await session.user("two")

    asyncio.run(main())


@pytest.mark.parametrize("after_s", [0.0, 0.05, 0.2])
def test_a_turn_that_is_cancelled_while_it_begins_is_over(tmp_path, disk, after_s):
    async def main():
        async with aio.open(tmp_path / "home") as home:
            session = await home.create(workspace=tmp_path)
            bracket = session.turn()
            beginning = asyncio.ensure_future(bracket.__aenter__())
            await asyncio.sleep(after_s)
            beginning.cancel()
            with pytest.raises(asyncio.CancelledError) as kept:
                await beginning
            disk.slow = False
            async with session.turn():
                await session.user("one")
            states = [entry.state async for entry in session.entries(kind="turn")]
            assert states in (["begin", "completed"], ["begin", "aborted", "begin", "completed"])
            del kept

    asyncio.run(main())


def test_an_opening_that_is_cancelled_leaves_no_home_open(tmp_path, monkeypatch):
    opened, went_on = [], threading.Event()
    open_home = blocking.open_home

    def slowly(*args, **options):
        went_on.wait(10)
        opened.append(open_home(*args, **options))
        return opened[0]

    async def main():
        opening = asyncio.ensure_future(aio.open(tmp_path / "home")._open())
        await asyncio.sleep(0.05)
        opening.cancel()
        went_on.set()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert opened
        with pytest.raises(turnlog.Invalid):
            opened[0].create()

    monkeypatch.setattr(blocking, "open_home", slowly)
    asyncio.run(main())


def test_a_catalog_that_is_closed_while_it_opens_is_closed(tmp_path, monkeypatch):
    opened = []

    class Slow(turnlog.Catalog):
        def __init__(self, *args, **options):
            time.sleep(0.2)
            super().__init__(*args, **options)
            opened.append("opened")

        def close(self):
            opened.append("closed")
            super().close()

    monkeypatch.setattr("turnlog.catalog.Catalog", Slow)

    async def main():
        with turnlog.open(tmp_path) as home:
            catalog = aio.Catalog(home, agents=False)
            asking = asyncio.ensure_future(catalog.cards())
            await asyncio.sleep(0.05)
            await asyncio.gather(catalog.close(), catalog.close())
            with contextlib.suppress(turnlog.TurnlogError):
                await asking
            assert opened == ["opened", "closed"]
            with pytest.raises(turnlog.Invalid):
                await catalog.cards()

    asyncio.run(main())


def test_a_home_may_be_closed_by_two_tasks(tmp_path):
    async def main():
        home = await aio.open(tmp_path / "home")
        await home.search("word")
        await asyncio.gather(home.close(), home.close())
        with pytest.raises(turnlog.Invalid):
            await home.search("word")

    asyncio.run(main())


def test_the_catalog_of_a_tenant_is_closed_with_its_home(tmp_path):
    async def main():
        async with aio.open(tmp_path / "home") as home:
            tenants = [await home.tenant(name) for name in ("a", "b", "c")]
            for tenant in tenants[:2]:
                await tenant.search("word")
            catalogs = [tenant._catalog for tenant in tenants[:2]]
            await tenants[1].close()
            assert not catalogs[0]._is_closed
        assert [catalog._is_closed for catalog in catalogs] == [True, True]
        assert [tenant._blocking._interior._is_closed for tenant in tenants] == [True] * 3
        for tenant in tenants:
            await tenant.close()
            for ask in (tenant.search("word"), tenant.sessions()):
                with pytest.raises(turnlog.Invalid):
                    await ask

    asyncio.run(main())


@pytest.mark.parametrize("place", ["folder", "memory:"])
def test_a_follower_reads_the_log_only_if_it_has_grown(tmp_path, monkeypatch, place):
    reads = []
    entries = blocking.Session.entries
    monkeypatch.setattr(
        blocking.Session, "entries", lambda *args, **fields: reads.append(1) or entries(*args, **fields)
    )

    async def main():
        async with aio.open(tmp_path if place == "folder" else place) as home:
            session = await home.create()
            follower = session.follow(after=0)
            seen = [await anext(follower)]
            waiting = asyncio.ensure_future(anext(follower))
            await asyncio.sleep(0.4)
            before = len(reads)
            await session.user("hello")
            seen.append(await waiting)
            seen.append(await anext(follower))
            await follower.aclose()
            assert [entry.type for entry in seen] == ["session", "writer", "message"]
            assert before <= 2

    asyncio.run(main())


def test_following_ends_with_the_home(tmp_path):
    async def main():
        home = await aio.open(tmp_path / "home")
        session = await home.create()

        async def watch():
            return [entry.type async for entry in session.follow(after=0, deltas=True)]

        task = asyncio.ensure_future(watch())
        await asyncio.sleep(0.2)
        await home.close()
        assert await task == ["session"]

    asyncio.run(main())


def test_a_follower_that_is_cancelled_ends(tmp_path):
    async def main():
        async with aio.open(tmp_path / "home") as home:
            session = await home.create()
            seen = []

            async def watch():
                async for entry in session.follow(after=0):
                    seen.append(entry.type)

            task = asyncio.ensure_future(watch())
            await session.user("one")
            while "message" not in seen:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert seen == ["session", "writer", "message"]

    asyncio.run(main())


def test_a_follower_that_is_cancelled_twice_listens_no_more(tmp_path):
    """The second time while it waits for a thread to end its listening on."""

    async def main():
        async with aio.open(tmp_path / "home") as home:
            session = await home.create()
            follower = session.follow(after=0, deltas=True)
            assert (await anext(follower)).type == "session"
            waiting = asyncio.ensure_future(anext(follower))
            await asyncio.sleep(0.2)
            assert list((tmp_path / "home" / LISTENING).iterdir())
            release = threading.Event()
            busy = [asyncio.ensure_future(home._threads.run(release.wait, 20)) for _ in range(8)]
            for _ in range(2):
                await asyncio.sleep(0.1)
                waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            release.set()
            await asyncio.gather(*busy)
            assert list((tmp_path / "home" / LISTENING).iterdir()) == []

    asyncio.run(main())


def test_a_home_can_be_awaited_or_entered(tmp_path):
    async def main():
        home = await aio.open(tmp_path / "home")
        session = await home.create()
        await home.close()
        async with aio.open(tmp_path / "home") as again:
            assert (await again.resume()).id == session.id

    asyncio.run(main())


def test_errors_are_the_same_ones(tmp_path):
    async def main():
        async with aio.open(tmp_path / "home") as home:
            with pytest.raises(turnlog.NotFound):
                await home.resume("nobody")
            session = await home.create()
            with pytest.raises(turnlog.Invalid):
                await session.append()
            with pytest.raises(turnlog.NotFound):
                await session.undo()
        with pytest.raises(turnlog.Invalid):
            await aio.open(tmp_path, durability="hope")

    asyncio.run(main())


def test_nothing_is_left_behind_that_was_never_awaited(tmp_path):
    async def main():
        async with aio.open(tmp_path / "home") as home:
            session = await home.create()
            await session.user("one")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(main())


def public(cls):
    return {name for name in dir(cls) if not name.startswith("_")}


@pytest.mark.parametrize(("plain", "other"), [(turnlog.Session, aio.Session), (turnlog.Home, aio.Home)])
def test_both_faces_have_the_same_methods(plain, other):
    assert public(plain) == public(other) - ({"search", "usage"} if plain is turnlog.Home else set())


@pytest.mark.parametrize("name", sorted(public(turnlog.Session) & public(aio.Session)))
def test_what_may_wait_for_a_disk_can_be_awaited(name):
    plain, other = getattr(turnlog.Session, name), getattr(aio.Session, name)
    if isinstance(plain, property):
        assert isinstance(other, property)
    else:
        is_async = inspect.iscoroutinefunction(other) or inspect.isasyncgenfunction(other)
        assert is_async or name in ("turn", "live")  # the one is entered with `async with`, the other waits for nothing


def test_a_home_may_be_closed_twice(tmp_path):
    async def main():
        async with aio.open(tmp_path / "home") as home:
            await home.create()
            await home.close()
        await home.close()

    asyncio.run(main())


def test_a_request_is_made_without_asking_the_store(tmp_path):
    async def main():
        async with aio.open(tmp_path) as home:
            s = await home.create()
            await s.user([turnlog.Text("see"), turnlog.Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")])
            return await s.context()

    context = asyncio.run(main())
    assert context.tokens
    [said] = anthropic.request(context, model="m", max_tokens=9)["messages"]
    assert [part["type"] for part in said["content"]] == ["text", "image"]


def test_whoever_appends_does_not_wait_for_what_takes_long(tmp_path):
    go_on = threading.Event()

    async def main():
        async with aio.open(tmp_path, checkpoints=False) as home:
            s = await home.create()
            long = [asyncio.ensure_future(home._threads.run_long(go_on.wait, 30)) for _ in range(40)]
            await s.user("a")
            async with asyncio.timeout(30):
                assert len(await s.messages()) == 1
            assert not any(task.done() for task in long)
            go_on.set()
            assert all(await asyncio.gather(*long))

    asyncio.run(main())


@pytest.mark.parametrize("name", ["checkpoint", "rewind", "diff", "export"])
def test_what_goes_through_files_is_among_what_takes_long(tmp_path, name):
    async def main():
        async with aio.open(tmp_path) as home:
            s = await home.create()
            on = []

            async def run_long(call, *args, **kwargs):
                on.append(name)

            s._threads.run_long = run_long
            await getattr(s, name)(*(["pi"] if name == "export" else []))
            assert on == [name]

    asyncio.run(main())


def test_what_failed_in_a_task_group_is_the_error_of_the_turn(tmp_path):
    async def fail(text):
        raise ValueError(text)

    async def main():
        async with aio.open(tmp_path) as home:
            s = await home.create()
            with pytest.raises(ExceptionGroup):
                async with s.turn(), asyncio.TaskGroup() as tasks:
                    tasks.create_task(fail("the tool broke"))
                    tasks.create_task(fail("and another one"))
            ends = [entry async for entry in s.entries(kind=turnlog.Turn)]
            assert (ends[-1].state, ends[-1].error) == (
                "failed",
                "ValueError: the tool broke; ValueError: and another one",
            )

    asyncio.run(main())


@pytest.mark.parametrize("name", ["push", "pull", "sync"])
def test_moving_takes_the_options_of_the_blocking_home(tmp_path, name):
    async def main():
        async with await aio.open(tmp_path / "here") as here, await aio.open(tmp_path / "there") as there:
            await (there if name == "pull" else here).create(id="s")
            told: list[tuple[int, int, str]] = []
            options = aio.home.TransferOptions(include_ignored=True, progress=lambda *facts: told.append(facts))
            await getattr(here, name)(there, **options)
            assert told[0] == (0, 1, "s")

    asyncio.run(main())
