"""The threads behind an event loop: what is submitted is done, once, and nothing is left of them."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from turnlog.aio.pool import Pool
from turnlog.aio.threads import Threads
from turnlog.errors import Invalid


def alive(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(name)]


def ended(name: str) -> bool:
    for _ in range(500):
        if not alive(name):
            return True
        time.sleep(0.01)
    return False


async def taken(pool: Pool, call: object) -> object:
    future = pool.submit(call)  # type: ignore[arg-type]
    assert future is not None
    return await future


def test_results_and_errors_come_back():
    async def work() -> None:
        threads = Threads("thing")
        assert await threads.run(divmod, 7, 2) == (3, 1)
        assert await threads.run_long(int, "ff", base=16) == 255
        with pytest.raises(ZeroDivisionError):
            await threads.run(divmod, 7, 0)
        with pytest.raises(RuntimeError, match="StopIteration"):
            await threads.run(next, iter(()))
        threads.close()
        with pytest.raises(Invalid, match="this thing is closed"):
            await threads.run(divmod, 7, 2)

    asyncio.run(work())


def test_a_child_process_has_threads_of_its_own():
    pool = Pool(1, "forked")
    assert asyncio.run(taken(pool, lambda: "parent")) == "parent"
    gate = threading.Event()

    async def busy() -> None:
        work = asyncio.ensure_future(taken(pool, gate.wait))
        await asyncio.sleep(0)
        if (child := os.fork()) == 0:
            code = 1
            try:
                code = int(forked(pool) != "child")
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        gate.set()
        assert await work

    def forked(pool: Pool) -> object:
        asyncio.events._set_running_loop(None)
        signal.alarm(20)
        return asyncio.new_event_loop().run_until_complete(taken(pool, lambda: "child"))

    asyncio.run(busy())


def test_one_after_the_other_needs_one_thread_and_many_at_once_as_many_as_there_may_be():
    async def work() -> None:
        pool = Pool(3, "some-at-once")
        for number in range(50):
            assert await taken(pool, lambda number=number: number) == number
        assert len(alive("some-at-once")) == 1
        gate = threading.Barrier(3)  # passed only by three at the same time
        waiting = [taken(pool, lambda: gate.wait(10)) for _ in range(9)]
        assert sorted(await asyncio.gather(*waiting)) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
        assert len(alive("some-at-once")) == 3
        pool.close()
        assert ended("some-at-once")

    asyncio.run(work())


def test_a_quick_call_does_not_wait_behind_a_slow_one():
    async def work() -> None:
        pool, gate = Pool(2, "slow-and-quick"), threading.Event()
        slow = pool.submit(lambda: gate.wait(10))
        for number in range(20):
            assert await asyncio.wait_for(taken(pool, lambda number=number: number), 5) == number
        gate.set()
        assert slow is not None and await slow
        pool.close()

    asyncio.run(work())


def test_what_was_cancelled_before_it_began_is_not_done_and_what_began_is():
    done: list[str] = []

    async def work() -> None:
        pool, gate, begun = Pool(1, "cancelled"), threading.Event(), threading.Event()

        def first() -> None:
            begun.set()
            gate.wait(10)
            done.append("first")

        running, waiting = pool.submit(first), pool.submit(lambda: done.append("second"))
        assert running is not None and waiting is not None
        begun.wait(10)
        running.cancel()
        waiting.cancel()
        gate.set()
        await taken(pool, lambda: done.append("third"))
        pool.close()

    asyncio.run(work())
    assert done == ["first", "third"]


def test_closed_it_does_what_it_has_and_takes_no_more():
    done: list[int] = []

    async def work() -> None:
        pool = Pool(2, "closing")
        waiting = [pool.submit(lambda number=number: done.append(number)) for number in range(100)]
        pool.close()
        pool.close()
        assert pool.submit(lambda: done.append(-1)) is None
        await asyncio.wait_for(asyncio.gather(*[future for future in waiting if future is not None]), 10)

    asyncio.run(work())
    assert sorted(done) == list(range(100))
    assert ended("closing")


def test_of_an_object_that_was_forgotten_no_thread_is_left():
    thread = asyncio.run(Threads("forgotten one").run(threading.current_thread))
    gc.collect()
    thread.join(5)
    assert not thread.is_alive()


def test_a_loop_that_is_gone_harms_nobody(capfd: pytest.CaptureFixture[str]):
    pool, gate = Pool(1, "gone"), threading.Event()

    async def leave() -> None:
        pool.submit(lambda: gate.wait(10))

    async def come() -> object:
        return await taken(pool, lambda: "here")

    asyncio.run(leave())
    gate.set()
    assert asyncio.run(come()) == "here"
    pool.close()
    assert ended("gone")
    assert capfd.readouterr().err == ""


def test_python_waits_for_what_was_submitted(tmp_path: Path):
    code = (
        "import asyncio, sys, time\n"
        "from turnlog.aio.pool import Pool\n"
        "def work():\n"
        "    time.sleep(0.3)\n"
        "    open(sys.argv[1], 'w').write('done')\n"
        "async def main():\n"
        "    Pool(2, 'late').submit(work)\n"
        "asyncio.run(main())\n"
    )
    ran = subprocess.run([sys.executable, "-c", code, tmp_path / "out"], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (tmp_path / "out").read_text() == "done"


def test_a_forked_process_has_threads_of_its_own():
    pool = Pool(1, "test")

    async def work(value):
        return await pool.submit(lambda: value)

    assert asyncio.run(work(1)) == 1
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # it must not wait for a thread that it does not have
        os._exit(asyncio.run(work(2)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert asyncio.run(work(3)) == 3
    pool.close()
    pool.join()
