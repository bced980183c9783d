"""What all suites of the store contract share: an empty store for every test, and threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from turnlog.store import Clock, Log, Store
from turnlog.testing.build import ManualClock, start

DEADLOCK_S = 300
"""After this many seconds, a thread that has not come back is stuck."""


class StoreTests:
    """Tests of a store: each has an empty one."""

    def connect(self, folder: Path, clock: Clock) -> Store:
        """An empty store. `folder` is an empty folder of this test's own, for stores that can use one."""
        raise NotImplementedError

    @pytest.fixture
    def clock(self) -> ManualClock:
        """The store's clock."""
        return ManualClock()

    @pytest.fixture
    def store(self, tmp_path: Path, clock: ManualClock) -> Iterator[Store]:
        """The store under test."""
        store = self.connect(tmp_path, clock)
        yield store
        store.close()

    @pytest.fixture
    def log(self, store: Store) -> Iterator[Log]:
        """A log that holds nothing but its first entry."""
        log = store.create("s", [start("s")])
        yield log
        log.close()


def run_together(count: int, job: Callable[[int], None]) -> None:
    """Run the job on that many threads at once, and raise what any of them raised."""
    barrier = threading.Barrier(count)
    errors: list[BaseException] = []

    def run(index: int) -> None:
        barrier.wait()
        try:
            job(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLOCK_S)
        assert not thread.is_alive(), f"a thread did not come back within {DEADLOCK_S} s"
    if errors:
        raise errors[0]
