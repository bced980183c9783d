"""The line to the database is cut at every point of an append: it is there once, or not at all and one is told."""

import uuid
from collections.abc import Callable, Iterator

import pytest

from tests.pgserver import Server
from tests.store.cutproxy import CutProxy
from turnlog.errors import AlreadyExists, Conflict, NotFound, Unavailable
from turnlog.log.entry import Note
from turnlog.store import derived
from turnlog.store import postgres as store_postgres
from turnlog.store.postgres import PostgresStore
from turnlog.testing import draft, message_draft, undamaged_entries
from turnlog.testing.build import seqs, start


@pytest.fixture
def proxy(postgres: Server) -> Iterator[CutProxy]:
    proxy = CutProxy(postgres.port)
    yield proxy
    proxy.close()


@pytest.fixture
def location(postgres: Server, proxy: CutProxy) -> str:
    return f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres?sslmode=disable&tenant={uuid.uuid4()}"


@pytest.fixture
def store(location: str) -> Iterator[PostgresStore]:
    store = store_postgres.connect(location)
    yield store
    store.close()


def at_every_cut(proxy: CutProxy, direction: str, step: int, job: Callable[[int, Callable[[], None]], None]) -> int:
    """Do it with the line cut so many bytes after it says `arm()`, more each time, until it gets through uncut."""
    for count, point in enumerate(range(0, 100_000, step)):
        before = proxy.cuts
        job(point, lambda point=point: proxy.cut_after(direction, point))
        proxy.whole()
        if proxy.cuts == before:
            return count
    raise AssertionError("it never ends")


STEPS = [("ask", 11), ("answer", 1)]
"""What is asked is long, and nothing happens before its last byte."""


@pytest.mark.parametrize(("direction", "step"), STEPS)
@pytest.mark.parametrize("once", [False, True])
def test_an_append_is_there_once_wherever_the_line_was_cut(
    proxy: CutProxy, store: PostgresStore, direction: str, step: int, once: bool
) -> None:
    log = store.create("s", [start("s")])
    last = 1
    done: list[str] = []

    def job(point: int, arm: Callable[[], None]) -> None:
        nonlocal last
        [warm] = log.append([draft(Note(text="on a fresh connection"))], after=last, head=0)
        arm()
        new = message_draft(str(point))
        [entry] = log.append([new], after=warm.seq, head=0, once=once)
        assert entry.seq == warm.seq + 1
        last = entry.seq
        done.extend([warm.id, entry.id])

    assert at_every_cut(proxy, direction, step, job) > 20
    entries = undamaged_entries(log)
    assert [entry.id for entry in entries[1:]] == done
    assert seqs(entries) == list(range(1, len(done) + 2))


@pytest.mark.parametrize(("direction", "step"), [("ask", 23), ("answer", 2)])
def test_a_batch_is_there_once_and_whole(proxy: CutProxy, store: PostgresStore, direction: str, step: int) -> None:
    log = store.create("s", [start("s")])
    done: list[str] = []

    def job(point: int, arm: Callable[[], None]) -> None:
        arm()
        batch = [draft(Note(text=f"{point}.{index}")) for index in range(3)]
        done.extend(entry.id for entry in log.append(batch, after=0, head=0))

    at_every_cut(proxy, direction, step, job)
    assert [entry.id for entry in undamaged_entries(log)[1:]] == done


@pytest.mark.parametrize(("direction", "step"), [("ask", 53), ("answer", 5)])
def test_a_session_is_made_once_and_still_ours(
    proxy: CutProxy, store: PostgresStore, direction: str, step: int
) -> None:
    def job(point: int, arm: Callable[[], None]) -> None:
        arm()
        log = store.create(f"s{point}", [start(f"s{point}"), draft(Note(text="second"))])
        assert log.append([draft(Note(text="third"))], after=0, head=0)[0].seq == 3
        with pytest.raises(AlreadyExists):
            store.create(f"s{point}", [start(f"s{point}")])

    at_every_cut(proxy, direction, step, job)


@pytest.mark.parametrize(("direction", "step"), [("ask", 61), ("answer", 13)])
def test_deleting_restoring_and_purging_are_done_once(
    proxy: CutProxy, store: PostgresStore, direction: str, step: int
) -> None:
    store.create("s", [start("s")])

    def job(point: int, arm: Callable[[], None]) -> None:
        store.create(f"p{point}", [start(f"p{point}")])
        arm()
        store.delete("s")
        store.restore("s")
        store.purge(f"p{point}")
        with pytest.raises(NotFound):
            store.open(f"p{point}", read_only=True)

    at_every_cut(proxy, direction, step, job)
    assert list(derived.ids(store)) == ["s"]


@pytest.mark.parametrize(("direction", "step"), [("ask", 61), ("answer", 13)])
def test_a_pack_is_there_whole_or_an_error_says_that_it_may_not_be(
    proxy: CutProxy, store: PostgresStore, direction: str, step: int
) -> None:
    def job(point: int, arm: Callable[[], None]) -> None:
        arm()
        names: list[str] = []
        try:
            with store.add() as add:
                names = [add(f"{point}.{index}".encode()) for index in range(3)]
        except Unavailable:
            pass
        else:
            assert all(map(store.has, names))
        assert len({store.has(name) for name in names}) <= 1

    at_every_cut(proxy, direction, step, job)


def test_what_came_of_it_is_found_out_before_a_conflict_is_raised(
    proxy: CutProxy, store: PostgresStore, postgres: Server, location: str
) -> None:
    """Our node got in, the answer was lost, and before we ask again somebody adds to it: that is no conflict."""
    direct = store_postgres.connect(location.replace(str(proxy.port), str(postgres.port)))
    log = store.create("s", [start("s")])
    proxy.cut_after("answer", 0)
    mine = message_draft("mine", id="mine")
    [entry] = log.append([mine], after=1, head=0)
    [theirs] = direct.open("s").append([message_draft("theirs")], after=entry.seq, head=entry.seq)
    assert log.append([mine], after=1, head=0) == [entry]
    with pytest.raises(Conflict):
        log.append([message_draft("late")], after=entry.seq, head=entry.seq)
    assert seqs(undamaged_entries(log)) == [1, entry.seq, theirs.seq]
    direct.close()


def test_a_server_that_says_nothing_is_an_error_in_bounded_time_and_a_retry_counts_once(
    proxy: CutProxy, location: str
) -> None:
    store = store_postgres.connect(location)
    log = store.create("s", [start("s")])
    new = draft(Note(text="new"))
    with store._pool.connection() as connection:
        connection.patience = 0.5
    proxy.stall()
    with pytest.raises(Unavailable, match=r"no answer for 0\.5 seconds"):
        log.append([new], after=0, head=0)
    proxy.flow()
    assert log.append([new], after=0, head=0)[0].seq == 2
    assert seqs(undamaged_entries(log)) == [1, 2]
    store.close()


def test_a_batch_that_the_line_does_not_take_at_once(store: PostgresStore) -> None:
    log = store.create("s", [start("s")])
    batch = [draft(Note(text=f"{number} {'x' * 30_000}")) for number in range(300)]
    done = log.append(batch, after=0, head=0)
    assert seqs(done) == list(range(2, 302))
    assert undamaged_entries(log)[1:] == done
