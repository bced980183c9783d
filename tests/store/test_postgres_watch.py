"""Following a session in PostgreSQL: told after the commit, only where somebody watches, and never relied upon."""

import threading
import uuid
from collections.abc import Iterator

import psycopg
import pytest
from msgspec.json import encode

import turnlog
from tests.pgserver import Server
from turnlog.session.interior import interior
from turnlog.store import postgres as store_postgres
from turnlog.store.broadcast import Delta
from turnlog.store.postgres import watch
from turnlog.store.postgres.background import Watched
from turnlog.store.postgres.broadcast import NoticeInbox
from turnlog.thread import reader
from turnlog.thread.reader import history_of


@pytest.fixture
def location(postgres: Server) -> str:
    return f"{postgres.url}?tenant={uuid.uuid4()}"


@pytest.fixture
def homes(location: str) -> Iterator[tuple[turnlog.Home, turnlog.Home]]:
    with turnlog.open(location) as one, turnlog.open(location) as two:
        yield one, two


@pytest.fixture
def only_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks for himself: what comes, comes by a message."""
    monkeypatch.setattr(reader, "LOOK_S", 60.0)


@pytest.fixture
def heard(postgres: Server, homes) -> Iterator[psycopg.Connection]:
    """Somebody who hears every message."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"listen {interior(homes[0]).store._leases.channel(connection)}".encode())
        yield connection


class Following:
    """A thread that follows a session until it has seen so many entries."""

    def __init__(self, session: turnlog.Session, count: int) -> None:
        self.seen: list[int] = []
        self._count = count
        self._session = session
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        for entry in self._session.follow(after=0):
            self.seen.append(entry.seq)
            if len(self.seen) == self._count:
                return


def wait_until_watched(home: turnlog.Home, session: turnlog.Session) -> None:
    num = history_of(session).log._rows.num
    while num not in {what.num for what in interior(home).store._watch.listener.watched}:
        threading.Event().wait(0.01)


def test_after_too_many_unread_deltas_none_arrives_without_those_before_it():
    inbox = NoticeInbox(Watched(1, 1), lambda inbox: None)
    old = inbox.name
    for at in range(10_002):
        inbox.put(old, encode(Delta("m", "x", at=at)))
    assert inbox.take() == []
    inbox.put(inbox.name, encode(Delta("m", "x" * 10_002)))
    assert [delta.at for delta in inbox.take()] == [0]


def test_who_follows_is_told(homes, only_told):
    one, two = homes
    session = one.create(id="s")
    following = Following(two.resume("s"), 8)
    wait_until_watched(two, session)
    session.user("a")  # and the entry that introduces this process
    for text in "bcdef":
        session.note(text)
    following.thread.join()
    assert following.seen == list(range(1, 9))


def test_nothing_is_sent_where_nobody_watches(homes, heard: psycopg.Connection):
    one, _ = homes
    session = one.create(id="s")
    session.user("a")
    assert interior(one).store._watch.notifier._thread is None
    assert list(heard.notifies(timeout=0)) == []


def test_many_appends_are_told_in_few_messages(homes, heard: psycopg.Connection, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watch, "_PAUSE_S", 0.3)
    one, two = homes
    session = one.create(id="s")
    following = Following(two.resume("s"), 52)
    wait_until_watched(two, session)
    for number in range(50):
        session.note(str(number))
    following.thread.join()
    assert len(following.seen) == 52
    assert 1 <= len(list(heard.notifies(timeout=0))) < 25


def test_following_goes_on_when_messages_are_lost(postgres: Server, homes):
    """The listener's connection is ended; whoever follows looks for himself, and listens again."""
    one, two = homes
    session = one.create(id="s")
    following = Following(two.resume("s"), 5)
    wait_until_watched(two, session)
    session.user("a")
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        admin.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where query ~ 'listen turnlog|insert into turnlog.lease'"
            " and pid <> pg_backend_pid()"
        )
    session.note("b")
    session.note("c")
    following.thread.join()
    assert following.seen == [1, 2, 3, 4, 5]


def test_closing_ends_the_waiting(homes, only_told):
    one, two = homes
    session = one.create(id="s")
    other = two.resume("s")
    following = Following(other, 99)
    wait_until_watched(two, session)
    other.close()
    following.thread.join()
    assert following.seen == [1]


def test_what_nobody_waits_for_any_more_is_not_watched(homes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watch, "_UNUSED_S", 0.1)
    one, two = homes
    session = one.create(id="s")
    following = Following(two.resume("s"), 2)
    session.note("a")
    following.thread.join()
    listener = interior(two).store._watch.listener
    thread = listener._thread
    if thread is not None:
        thread.join()
    assert not listener._used
    session.note("b")
    assert history_of(session).log._rows._is_watched is False


def test_a_closed_store_has_no_threads_left(location: str):
    before = set(threading.enumerate())
    store = store_postgres.connect(location)
    with turnlog.open(location) as home:
        session = home.create(id="s")
        log = store.open("s")
        log.wait(1, seconds=0.01)
        session.note("a")
    store.close()
    assert set(threading.enumerate()) == before
