"""The server is killed with -9 while eight threads append: what was acknowledged is there, once, in order."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tests.pgserver import Server
from turnlog.errors import Conflict
from turnlog.log.entry import Note
from turnlog.store import postgres
from turnlog.testing import draft, message_draft, undamaged_entries
from turnlog.testing.build import start

THREADS = 8


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.remove()


class Load:
    """Threads that append to a session of their own and to one they share, and write down what was acknowledged."""

    def __init__(self, location: str) -> None:
        self.store = postgres.connect(location, patience=60)
        self.acked: dict[str, list[tuple[int, str]]] = {"shared": []}
        self.errors: list[BaseException] = []
        self._count = threading.Condition()
        self.total = 0
        self._is_over = False
        self.store.create("shared", [start("shared")])
        for index in range(THREADS):
            self.store.create(f"own {index}", [start(f"own {index}")])
            self.acked[f"own {index}"] = []

    def run(self, index: int) -> None:
        try:
            own, shared = self.store.open(f"own {index}"), self.store.open("shared")
            last = 1
            while not self._is_over:
                [node] = own.append([message_draft("node")], after=last, head=last if last > 1 else 0, once=True)
                last = node.seq
                pair = [draft(Note(text="one")), draft(Note(text="two"))]
                self.ack(f"own {index}", node)
                for entry in shared.append(pair, after=0, head=0):
                    self.ack("shared", entry)
        except BaseException as error:
            self.errors.append(error)
            self.ack("errors", None)

    def ack(self, where, entry) -> None:
        with self._count:
            if entry is not None:
                self.acked[where].append((entry.seq, entry.id))
            self.total += 1
            self._count.notify_all()

    def wait_for(self, more: int) -> None:
        with self._count:
            wanted = self.total + more
            self._count.wait_for(lambda: self.total >= wanted or self.errors)
        if self.errors:
            raise self.errors[0]

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [threading.Thread(target=self.run, args=(index,)) for index in range(THREADS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._is_over = True
            for thread in threads:
                thread.join()
        if self.errors:
            raise self.errors[0]

    def check(self) -> None:
        """Nothing acknowledged is missing, doubled or out of order, and there are no gaps."""
        for name, acked in self.acked.items():
            entries = undamaged_entries(self.store.open(name))
            assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
            ids = [entry.id for entry in entries]
            assert len(set(ids)) == len(ids)
            there = {(entry.seq, entry.id) for entry in entries}
            assert set(acked) <= there
            # Every append was acknowledged in the end, so there is nothing else either.
            assert len(acked) == len(entries) - 1
            assert [entry.text for entry in entries if isinstance(entry, Note)] == ["one", "two"] * (
                sum(isinstance(entry, Note) for entry in entries) // 2
            )


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(server: Server):
    load = Load(server.url)
    with load.running():
        for _ in range(3):
            load.wait_for(150)
            server.kill()
            server.start(wait=False)
        load.wait_for(150)
    load.check()
    load.store.close()


def test_nothing_is_lost_when_a_backend_is_killed_and_the_server_resets_itself(server: Server):
    load = Load(server.url)
    with load.running():
        for _ in range(3):
            load.wait_for(120)
            with psycopg.connect(server.url) as connection:
                query = "select pid from pg_stat_activity where application_name = 'turnlog' limit 1"
                [(pid,)] = connection.execute(query).fetchall()
            os.kill(pid, signal.SIGKILL)
        load.wait_for(120)
    load.check()
    load.store.close()


def test_nothing_is_lost_when_connections_are_ended_or_the_server_restarts(server: Server):
    load = Load(server.url)
    with load.running():
        for _ in range(3):
            load.wait_for(200)
            with psycopg.connect(server.url) as connection:
                connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'turnlog'"
                )
        load.wait_for(200)
        server.stop()
        server.start(wait=False)
        load.wait_for(200)
    load.check()
    load.store.close()


def test_an_old_writer_conflicts_however_long_it_slept_and_whatever_became_of_the_server(server: Server):
    store = postgres.connect(server.url)
    old, new = store.create("s", [start("s")]), store.open("s")
    [first] = old.append([message_draft("first")], after=1, head=0)
    [second] = new.append([message_draft("second")], after=first.seq, head=first.seq)
    server.kill()
    server.start()
    with pytest.raises(Conflict):
        old.append([message_draft("late")], after=first.seq, head=first.seq)
    assert [entry.id for entry in undamaged_entries(old)][1:] == [first.id, second.id]
    store.close()
