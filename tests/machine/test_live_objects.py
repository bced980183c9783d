"""Objects that are found as long as they live, whatever other threads do."""

import gc
import sys
import threading

from turnlog.machine.liveobjects import LiveObjects


class Thing:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def test_each_object_is_there_until_it_is_garbage():
    things = LiveObjects[Thing]()
    one, other = Thing(), Thing()
    things.add(one)
    things.add(other)
    things.add(one)
    assert [id(thing) for thing in things] == [id(one), id(other)]
    del other
    gc.collect()
    assert [id(thing) for thing in things] == [id(one)]


def test_threads_add_while_others_iterate():
    things, is_over = LiveObjects[Thing](), threading.Event()

    def add() -> None:
        while not is_over.is_set():
            kept = [Thing() for _ in range(50)]
            for thing in kept:
                things.add(thing)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    adding = threading.Thread(target=add)
    adding.start()
    try:
        for _ in range(5_000):
            assert all(isinstance(thing, Thing) for thing in things)
    finally:
        is_over.set()
        adding.join()
        sys.setswitchinterval(interval)
