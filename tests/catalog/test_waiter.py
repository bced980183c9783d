"""A question that nobody waits for any more is given up, and nothing else is."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.catalog.machine import Machine
from turnlog.catalog import Catalog
from turnlog.catalog.index.index import Index
from turnlog.catalog.waiter import GivenUp, PatientLock, Waiter, while_wanted

COUNT = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {}) SELECT max(i) FROM n"
LONG = 20_000_000
"""To count so far takes many seconds."""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path, monkeypatch)
    with turnlog.open(str(machine.home)) as home, home.create(id="one", title="A needle") as session:
        session.user("where is the needle?")
    return machine


class Asking:
    """Another thread that asks, for somebody who may leave."""

    def __init__(self, ask: Callable[[], object]) -> None:
        self.waiter, self.outcome = Waiter(), None
        self._ask = ask
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with self.waiter.waiting():
            try:
                self.outcome: Any = self._ask()
            except GivenUp as given_up:
                self.outcome = given_up

    def leave(self) -> object:
        """What came of it afterwards."""
        self.waiter.leave()
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.outcome


def test_a_question_is_stopped_in_the_middle_and_the_next_one_is_answered(machine: Machine):
    begun = threading.Event()

    def endless(indexes: Sequence[Index]) -> object:
        begun.set()
        return list(indexes[0].engine.rows(COUNT.format(LONG)))

    with machine.catalog() as catalog:
        asking = Asking(lambda: catalog.ask(endless))
        assert begun.wait(20)
        assert isinstance(asking.leave(), GivenUp)
        assert [card.id for card in catalog.cards()] == ["one"]
        [[last]] = catalog.ask(lambda indexes: list(indexes[0].engine.rows(COUNT.format(100_000))))
        assert last == 100_000, "who has not left is answered"


def test_who_waits_for_his_turn_leaves_without_it(machine: Machine):
    with machine.catalog() as catalog, catalog._mutex:
        asking = Asking(catalog.cards)
        assert isinstance(asking.leave(), GivenUp)


def test_what_is_read_on_the_way_is_read_to_its_end(machine: Machine):
    with machine.catalog() as catalog:
        waiter = Waiter()
        waiter.leave()
        with waiter.waiting(), pytest.raises(GivenUp):
            catalog.search("needle")
        assert _count(catalog) == 1


def _count(catalog: Catalog) -> int:
    """How many sessions are in it, without a look at the disk."""
    return catalog._local.index.count()


def test_only_what_is_asked_inside_is_asked_for_somebody(machine: Machine):
    with machine.catalog() as catalog:
        waiter = Waiter()
        with waiter.waiting():
            assert catalog.cards()
        waiter.leave()
        assert catalog.cards()


def test_reading_ends_with_who_waits_and_a_lock_can_be_taken_twice():
    lock, waiter = PatientLock(), Waiter()
    seen: list[int] = []
    with waiter.waiting(), lock, pytest.raises(GivenUp):
        for number in while_wanted(range(1_000_000)):
            seen.append(number)
            with lock:
                if number == 3:
                    waiter.leave()
    assert 3 < len(seen) < 1_000
