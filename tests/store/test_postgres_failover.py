"""A primary with a synchronous standby: the primary is killed under load, the standby takes over, nothing is lost."""

import threading
import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

import turnlog
from tests.pgserver import Server
from tests.store.test_postgres_crash import Load
from turnlog.errors import Unavailable
from turnlog.log.entry import Note
from turnlog.log.payload import digest
from turnlog.store import derived
from turnlog.store import postgres as store_postgres
from turnlog.testing import draft, undamaged_entries
from turnlog.testing.build import seqs, start


class Pair:
    """Two servers, the second of which has all that the first one acknowledges."""

    def __init__(self) -> None:
        self.primary = Server()
        if not (self.primary.bin / "pg_basebackup").exists():
            self.primary.remove()
            pytest.skip("this PostgreSQL came without pg_basebackup")
        self.standby = Server(copy_of=self.primary)
        with psycopg.connect(self.primary.url, autocommit=True) as admin:
            admin.execute("alter system set synchronous_standby_names = '*'")
            admin.execute("select pg_reload_conf()")
            while ("sync",) not in admin.execute("select sync_state from pg_stat_replication").fetchall():
                pass

    @property
    def url(self) -> str:
        hosts = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        return f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write"

    def promote(self) -> None:
        with psycopg.connect(self.standby.url, autocommit=True) as admin:
            assert admin.execute("select pg_promote()").fetchall() == [(True,)]

    def remove(self) -> None:
        self.standby.remove()
        self.primary.remove()


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.remove()


@pytest.fixture(scope="module")
def lasting() -> Iterator[Pair]:
    """For those who leave both as they found them."""
    pair = Pair()
    yield pair
    pair.remove()


def test_nothing_acknowledged_is_lost_when_the_primary_is_killed_and_the_standby_promoted(pair: Pair):
    load = Load(pair.url)  # which gives up, and fails, where an append takes more than a minute
    with load.running():
        load.wait_for(600)
        pair.primary.kill()
        pair.promote()
        load.wait_for(600)
    load.check()
    assert derived.health(load.store)["ok"] is True
    load.store.close()
    with turnlog.open(pair.url) as home:
        assert home.health()["standby"] is False


def test_a_standby_alone_is_said_to_be_one_and_can_be_read(lasting: Pair):
    pair = lasting
    with turnlog.open(pair.url) as home:
        home.create(id="read", title="Read me").user("hello")
    with psycopg.connect(pair.primary.url) as one, psycopg.connect(pair.standby.url, autocommit=True) as two:
        [(end,)] = one.execute("select pg_current_wal_lsn()").fetchall()
        while two.execute("select pg_last_wal_replay_lsn() < %s", (end,)).fetchall() == [(True,)]:
            pass
    store = store_postgres.connect(pair.standby.url.partition("?")[0], patience=2)
    health = derived.health(store)
    assert (health["ok"], health["standby"], health["reason"]) == (False, True, "standby")
    with turnlog.open(pair.standby.url) as home:
        assert [row.title for row in home.sessions(limit=1)] == ["Read me"]
        assert home.resume().messages()[0].blocks[0].text == "hello"
    with pytest.raises(Unavailable) as caught:
        store.create("s", [start("s")])
    assert "target_session_attrs=read-write" in str(caught.value.hint)
    store.close()


APPENDS = ["an append", "a settled append", "a session", "blobs", "a pack"]


@pytest.mark.parametrize("what", APPENDS)
def test_what_is_committed_here_and_nowhere_else_is_not_acknowledged(lasting: Pair, what: str):
    """The standby is gone and somebody cancels the wait for it: the server then says done, with a warning."""
    store = store_postgres.connect(f"{lasting.primary.url}?tenant={uuid.uuid4()}", patience=60)
    log = store.create("s", [start("s")])
    if what == "a settled append":
        store.open("s").append([draft(Note(text="before"))], after=0, head=0)

    def pack() -> None:
        with store.add() as add:
            add(b"x")

    work = {
        "an append": lambda: log.append([draft(Note(text="x"))], after=0, head=0),
        "a settled append": lambda: log.append([draft(Note(text="x"))], after=0, head=0),
        "a session": lambda: store.create("t", [start("t")]),
        "blobs": lambda: derived.put(store, {digest(b"x"): b"x"}),
        "a pack": pack,
    }[what]
    lasting.standby.stop()
    done: list[Any] = []
    thread = threading.Thread(target=lambda: done.append(work()))
    thread.start()
    query = "select pid, query ~ 'emit_message' from pg_stat_activity where wait_event = 'SyncRep'"
    with psycopg.connect(lasting.primary.url, autocommit=True) as admin:
        waits_again = False
        while not waits_again and not done:
            for pid, waits_again in admin.execute(query).fetchall():
                if not waits_again:
                    admin.execute("select pg_cancel_backend(%s)", (pid,))
    assert not done
    lasting.standby.start()
    thread.join()
    assert len(done) == 1
    assert seqs(undamaged_entries(log)) == list(range(1, 2 + what.count("append") + what.count("settled")))
    store.close()
