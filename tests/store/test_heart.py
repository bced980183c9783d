"""Whose a late beat of an event loop is: the judge of the service is judged here."""

import asyncio
import os
import subprocess
import sys
import time

import pytest

from tests.store.heart import LATE_S, Beats, Heart, queued_s


def test_who_keeps_the_interpreter_is_seen():
    """One call in C that does not let go of it, on another thread: the loop is late, and that is ours."""

    def keep() -> None:
        begin = time.monotonic()
        while time.monotonic() - begin < 4 * LATE_S:
            sum(range(20_000_000))

    async def main() -> Beats:
        heart = Heart("ours")
        beating = asyncio.create_task(heart.beat())
        await asyncio.sleep(LATE_S)
        await asyncio.to_thread(keep)
        await asyncio.sleep(LATE_S)
        beating.cancel()
        return heart.kinds["ours"]

    beats = asyncio.run(main())
    assert beats.late_ours >= 1
    assert beats.worst_ours_ms > LATE_S * 1000


@pytest.mark.skipif(queued_s() == 0, reason="this system does not say for how long a thread waits for a processor")
def test_what_others_take_of_the_processor_is_the_machines():
    allowed = os.sched_getaffinity(0)
    place = min(allowed)
    code = f"import os; os.sched_setaffinity(0, {{{place}}})\nwhile True: pass"
    others = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    os.sched_setaffinity(0, {place})
    try:
        begin, queued, spent = time.monotonic(), queued_s(), time.thread_time()
        while time.monotonic() - begin < 1:
            pass
        taken, had, waited = time.monotonic() - begin, time.thread_time() - spent, queued_s() - queued
    finally:
        os.sched_setaffinity(0, allowed)
        for one in others:
            one.kill()
            one.wait()
    assert waited > 0.2
    assert had + waited == pytest.approx(taken, abs=0.2)
    beats = Beats()
    beats.count(taken, waited)
    assert beats.worst_ours_ms == pytest.approx(had * 1000, abs=200)


def test_a_beat_that_only_waited_for_a_processor_is_late_and_not_ours():
    beats = Beats()
    beats.count(0.08, 0.07)
    beats.count(0.08, 0.01)
    assert (beats.late, beats.late_ours, round(beats.worst_ours_ms)) == (2, 1, 70)
