"""A server that is down, full, slow, locked or too old: a clear error in bounded time, and nothing is half done."""

import fcntl
import os
import pwd
import random
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

import turnlog
from tests.pgserver import Server, impatient
from turnlog.errors import Invalid, OutOfSpace, Unavailable, Unsupported
from turnlog.log.entry import Note
from turnlog.log.payload import digest
from turnlog.store import OpenFile, derived
from turnlog.store import postgres as store_postgres
from turnlog.store.postgres import pool, schema
from turnlog.store.postgres.sharing import BlobLease
from turnlog.testing import draft, undamaged_entries
from turnlog.testing.build import seqs, start


@pytest.fixture
def location(postgres: Server) -> str:
    return f"{postgres.url}?tenant={uuid.uuid4()}"


@pytest.fixture
def admin(postgres: Server) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def database(postgres: Server) -> str:
    """A database of this test's own."""
    return postgres.database(f"d{uuid.uuid4().hex}")


@pytest.fixture
def role(postgres: Server) -> str:
    """A role without any rights."""
    return postgres.role()


def note(text: str = "") -> turnlog.store.Draft:
    return draft(Note(text=text))


# ── no connection ─────────────────────────────────────────────────────────────────────────────────


def test_nobody_there(postgres: Server):
    with pytest.raises(Unavailable, match="onnection refused") as caught:
        turnlog.open("postgresql://postgres:secret@127.0.0.1:1/none")
    assert caught.value.hint == "the database at 127.0.0.1:1/none did not answer; a retry is safe"
    assert "secret" not in str(caught.value)


def test_no_such_host():
    with pytest.raises(Unavailable) as caught:
        turnlog.open("postgresql://postgres@host.invalid/none")
    assert caught.value.hint == "no such host: host.invalid:5432/none"


def test_no_such_database(postgres: Server):
    with pytest.raises(Unavailable, match='database "none" does not exist') as caught:
        turnlog.open(postgres.url.removesuffix("postgres") + "none")
    assert "createdb" in str(caught.value.hint)


def test_a_wrong_password_is_said_at_once_and_not_repeated(postgres: Server, role: str):
    with postgres.asking_for_passwords(role):
        for password in (":hunter2", ""):
            with pytest.raises(Unavailable) as caught:
                turnlog.open(f"postgresql://{role}{password}@127.0.0.1:{postgres.port}/postgres")
            assert "check user and password" in str(caught.value.hint)
            assert "hunter2" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize("location", ["postgresql://a:secret@h:port/x", "postgresql://a:secret@h/x?colour=red"])
def test_what_is_not_a_location_is_refused_without_showing_it(location: str):
    with pytest.raises(Invalid) as caught:
        turnlog.open(location)
    assert "secret" not in f"{caught.value} {caught.value.hint}"


def test_out_of_connections(postgres: Server, admin: psycopg.Connection, role: str):
    url = postgres.url.replace("postgres@", f"{role}@")
    admin.execute(f"alter role {role} connection limit 1")
    with psycopg.connect(url), pytest.raises(Unavailable) as caught:
        turnlog.open(url)
    assert "out of connections" in str(caught.value.hint)


def test_all_connections_of_this_process_are_busy(location: str):
    store = store_postgres.connect(location, connections=1)
    with store._pool.connection(), impatient(store), pytest.raises(Unavailable, match="all 1 connections"):
        store.has(digest(b""))
    assert not store.has(digest(b""))
    store.close()


def test_a_server_that_went_away_and_came_back(postgres: Server):
    server = Server()
    try:
        store = store_postgres.connect(server.url)
        log = store.create("s", [start("s")])
        server.stop()
        new = note("new")
        with impatient(store):
            with pytest.raises(Unavailable):
                log.append([new], after=0, head=0)
            health = derived.health(store)
        assert (health["ok"], health["reason"]) == (False, "away")
        assert "efused" in health["problem"]
        server.start()
        assert log.append([new], after=0, head=0)[0].seq == 2
        assert derived.health(store)["ok"] is True
        store.close()
    finally:
        server.remove()


# ── a server that cannot ──────────────────────────────────────────────────────────────────────────


def test_an_old_server_is_refused(location: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pool, "_OLDEST", 990000)
    with pytest.raises(Unsupported, match="needs 13 or newer"):
        turnlog.open(location)


def test_a_server_with_a_full_disk(database: str):
    """As it says it: to fill a disk takes one."""
    store = store_postgres.connect(database)
    log = store.create("s", [start("s")])
    with psycopg.connect(database, autocommit=True) as admin:
        admin.execute("""
            create function no_room() returns trigger language plpgsql as $$
            begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$;
            create trigger no_room before insert on turnlog.entry for each row execute function no_room();
            create trigger no_room before insert on turnlog.piece for each row execute function no_room();
        """)
        with pytest.raises(OutOfSpace, match="No space left"):
            log.append([note()], after=0, head=0)
        with pytest.raises(OutOfSpace):
            derived.put(store, {digest(b"x"): b"x"})
        with pytest.raises(OutOfSpace), store.add() as add:
            add(b"x")
        assert not store.has(digest(b"x"))
        admin.execute("create trigger no_room before insert on turnlog.derived for each row execute function no_room()")
        health = derived.health(store)
        assert (health["ok"], health["reason"]) == (False, "full")
        assert "is full" in health["hint"]
        admin.execute("drop trigger no_room on turnlog.derived")
        admin.execute("drop trigger no_room on turnlog.entry; drop trigger no_room on turnlog.piece")
    assert log.append([note()], after=0, head=0)[0].seq == 2
    store.close()


@pytest.fixture
def small(postgres: Server) -> Iterator[str]:
    """A database on a small disk of its own, part of which is taken by a file `ballast`."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    place = postgres.folder / f"small-{uuid.uuid4().hex}"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "turnlog-test", place], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no small disk: {mounted.stderr.decode().strip()}")
    name = f"d{uuid.uuid4().hex}"
    try:
        (place / "ballast").write_bytes(bytes(4 << 20))
        (place / "data").mkdir()
        os.chown(place / "data", pwd.getpwnam(str(postgres.user)).pw_uid, -1)
        with psycopg.connect(postgres.url, autocommit=True) as admin:
            admin.execute(f"create tablespace {name} location '{place / 'data'}'")
            admin.execute(f"create database {name} tablespace {name}")
        yield f"{postgres.url.removesuffix('postgres')}{name}?ballast={place / 'ballast'}"
        with psycopg.connect(postgres.url, autocommit=True) as admin:
            admin.execute(f"drop database {name} with (force)")
            admin.execute(f"drop tablespace {name}")
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_disk_that_is_really_full(small: str):
    """What was acknowledged is there, what was refused is not, and it goes on when there is room."""
    location, _, ballast = small.partition("?ballast=")
    store = store_postgres.connect(location)
    log = store.create("s", [start("s")])
    noise = random.Random(0)
    acked = [1]
    with pytest.raises(OutOfSpace) as caught:
        while len(acked) < 1000:
            text = noise.randbytes(20_000).hex()  # which takes room also when it is compressed
            acked += seqs(log.append([note(text)], after=0, head=0))
    assert "is full" in str(caught.value.hint)
    assert len(acked) > 10
    Path(ballast).unlink()  # until then even reading may fail: the server writes out pages to have room for others
    assert seqs(undamaged_entries(log)) == acked
    acked += seqs(log.append([note(noise.randbytes(20_000).hex())], after=0, head=0))
    assert seqs(undamaged_entries(log)) == acked == list(range(1, len(acked) + 1))
    assert derived.health(store)["ok"] is True
    store.close()


def test_a_server_that_waits_for_a_lock(location: str, admin: psycopg.Connection):
    store = store_postgres.connect(location)
    log = store.create("s", [start("s")])
    new = note()
    with admin.transaction(), impatient(store):
        admin.execute("select from turnlog.session where num = %s for update", (log._rows.num,))
        with pytest.raises(Unavailable) as caught:
            log.append([new], after=0, head=0)
        assert "too slow or waits for a lock" in str(caught.value.hint)
    assert log.append([new], after=0, head=0)[0].seq == 2
    assert seqs(undamaged_entries(log)) == [1, 2]
    store.close()


def test_a_standby(postgres: Server, admin: psycopg.Connection, database: str, role: str):
    turnlog.open(database).close()
    postgres.grant(database, role)
    owned = database.replace("postgres@", f"{role}@")
    store = store_postgres.connect(owned)
    log = store.create("s", [start("s")])
    admin.execute(f"alter role {role} set default_transaction_read_only = on")
    with impatient(store), pytest.raises(Unavailable) as caught:
        log.append([note()], after=0, head=0)
    assert "target_session_attrs=read-write" in str(caught.value.hint)
    assert seqs(undamaged_entries(log)) == [1]
    store.close()


# ── tables ────────────────────────────────────────────────────────────────────────────────────────


def test_tables_of_a_newer_version_are_refused_and_left_alone(database: str):
    turnlog.open(database).close()
    with psycopg.connect(database, autocommit=True) as admin:
        admin.execute("insert into turnlog.migration (number) values (9999)")
        with pytest.raises(Unsupported, match="version 9999; this turnlog knows version") as caught:
            turnlog.open(database)
        assert caught.value.hint == "upgrade turnlog"
        admin.execute("delete from turnlog.migration where number = 9999")
    turnlog.open(database).close()


def test_a_migration_is_applied_whole_or_not_at_all(database: str, monkeypatch: pytest.MonkeyPatch):
    real = schema.migrations()
    broken = {**real, 9000: "create table turnlog.half (); select 1 / 0"}
    monkeypatch.setattr(schema, "migrations", lambda: broken)
    with pytest.raises(Unavailable, match="division by zero"):
        turnlog.open(database)
    with psycopg.connect(database) as admin:
        assert admin.execute("select to_regclass('turnlog.half'), to_regclass('turnlog.session')").fetchall() == [
            (None, None)
        ]
    monkeypatch.setattr(schema, "migrations", lambda: {**real, 9000: "create table turnlog.half ()"})
    turnlog.open(database).close()
    with psycopg.connect(database) as admin:
        query = "select array_agg(number order by number) from turnlog.migration"
        assert admin.execute(query).fetchall() == [([*real, 9000],)]


def test_an_application_needs_no_more_rights_than_the_document_says(postgres: Server, database: str, role: str):
    owned = database.replace("postgres@", f"{role}@")
    with pytest.raises(Unsupported, match="permission denied") as caught:
        turnlog.open(owned)
    assert "docs/guide/postgres.md" in str(caught.value.hint)
    with turnlog.open(database) as home:
        with pytest.raises(Unsupported, match="permission denied"):
            turnlog.open(owned)
        postgres.grant(database, role)
        home.create(id="theirs")
    with turnlog.open(owned) as home:
        session = home.create(id="mine")
        session.user("x" * 100_000)
        fork = session.fork(id="fork")
        home.delete("mine")
        home.purge("mine")
        fork.user("on")
        home.delete("fork")
        home.restore("fork")
        home.gc()
        assert [len(message.blocks[0].text) for message in home.resume("fork").messages()] == [100_000, 2]
        assert home.health()["ok"] is True
        with pytest.raises(psycopg.errors.InsufficientPrivilege), psycopg.connect(owned) as direct:
            direct.execute("insert into turnlog.member values (current_user, 'other')")
        with pytest.raises(psycopg.errors.InsufficientPrivilege), psycopg.connect(owned) as direct:
            direct.execute("select * from turnlog.entry_0")


# ── durability ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("durability", "commit"), [("fsync", "on"), ("flush", "off")])
def test_a_commit_waits_for_the_disk_whatever_the_default_is(
    postgres: Server, admin: psycopg.Connection, database: str, durability: str, commit: str
):
    name = database.rpartition("/")[2]
    admin.execute(f'alter database "{name}" set synchronous_commit = off')
    with turnlog.open(database, durability=durability) as home:
        assert home.health()["synchronous_commit"] == commit


# ── blobs ─────────────────────────────────────────────────────────────────────────────────────────


def test_collecting_waits_for_those_who_keep(location: str, monkeypatch: pytest.MonkeyPatch):
    """Two stores, as two processes would have them."""
    one, two = store_postgres.connect(location), store_postgres.connect(location)
    order: list[str] = []
    attempts = threading.Semaphore(0)
    attempt = two._pool.run

    def counted(doing: str, job: Any) -> Any:
        got = attempt(doing, job)
        if doing == "locking the blobs":
            attempts.release()
        return got

    monkeypatch.setattr(two._pool, "run", counted)

    def collect() -> None:
        two.collect(lambda: order.append("collected") or set())

    with one.keeping():
        one.put({digest(b"x"): b"x"})
        with one.keeping():
            thread = threading.Thread(target=collect)
            thread.start()
        attempts.acquire()
        attempts.acquire(timeout=5)  # who tries a second time did not get in at the first
        order.append("kept")
        assert one.has(digest(b"x"))
    thread.join()
    assert order == ["kept", "collected"]
    assert not one.has(digest(b"x"))

    def needed() -> set[str]:
        with one.keeping():
            one.put({digest(b"x"): b"x"})
            return {digest(b"x")}

    one.collect(needed)
    assert one.has(digest(b"x"))
    one.close()
    two.close()


@pytest.mark.parametrize("collected", [False, True])
def test_a_lock_that_was_lost_matters_if_somebody_collected(location: str, admin: psycopg.Connection, collected: bool):
    one, two = store_postgres.connect(location), store_postgres.connect(location)

    def work() -> None:
        with one.keeping():
            one.put({digest(b"x"): b"x"})
            admin.execute("truncate turnlog.lease")  # as after a crash of the server
            if collected:
                two.collect(set)

    if collected:
        with pytest.raises(Unavailable, match="another one collected"):
            work()
    else:
        work()
    with one.keeping(), two.keeping():
        pass
    one.close()
    two.close()


def expire(admin: psycopg.Connection) -> None:
    """As if nobody had renewed anything for long."""
    admin.execute("update turnlog.lease set until = '-infinity'")


def test_who_keeps_blobs_and_slept_too_long_writes_nothing_that_refers_to_them(location: str, admin):
    one, two = store_postgres.connect(location), store_postgres.connect(location)
    log = one.create("s", [start("s")])
    with pytest.raises(Unavailable, match="another one collected"), one.keeping():
        one.put({digest(b"x"): b"x"})
        expire(admin)
        assert two.collect(set).blobs == 1
        for drafts in ([note()], [note(), note()]):
            with pytest.raises(Unavailable, match="another one collected"):
                log.append(drafts, after=0, head=0)
        with pytest.raises(Unavailable, match="another one collected"):
            one.create("another", [start("another")])
    assert seqs(undamaged_entries(log)) == [1]
    assert list(one.ids()) == ["s"]
    with one.keeping():
        assert log.append([note()], after=0, head=0)[0].seq == 2
    one.close()
    two.close()


def test_who_collects_and_slept_too_long_removes_nothing(location: str, admin: psycopg.Connection):
    one, two = store_postgres.connect(location), store_postgres.connect(location)
    one.put({digest(b"x"): b"x"})
    with ExitStack() as stack:

        def too_late() -> set[str]:
            expire(admin)
            stack.enter_context(two.keeping())
            return set()

        with pytest.raises(Unavailable, match="another process took over"):
            one.collect(too_late)
        assert two.has(digest(b"x"))
    one.close()
    two.close()


def test_waiting_for_the_blobs_has_an_end_that_names_who_has_them(location: str, monkeypatch: pytest.MonkeyPatch):
    one, two = store_postgres.connect(location), store_postgres.connect(location)
    monkeypatch.setattr(two._blobs._lock, "limit_s", 0.2)
    who = rf"held by process {os.getpid()} on \S+ for 0.2 seconds"
    with one.keeping(), pytest.raises(Unavailable, match=who), two._blobs.exclusive():
        pass
    for wanted in (two.keeping, two._blobs.exclusive):
        with one._blobs.exclusive(), pytest.raises(Unavailable, match=who), wanted():
            pass
    with two._blobs.exclusive():
        failed: list[str] = []

        def try_it() -> None:
            try:
                with two.keeping():
                    pass
            except Unavailable as error:
                failed.append(str(error))

        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()
        assert "another thread of this process" in failed[0]
    one.close()
    two.close()


SLEEPER = """
import sys
from turnlog.store import postgres
from turnlog.store.postgres import lease
from turnlog.testing import draft
from turnlog.testing.build import start
from turnlog.log.entry import Note
lease.TERM_S, lease._BEAT_S = 0.6, 0.1
store = postgres.connect(sys.argv[1])
log = store.create("s", [start("s")])
with store.keeping():
    print("kept", flush=True)
    sys.stdin.readline()
    log.append([draft(Note(text="too late"))], after=0, head=0)
"""


def test_a_process_that_is_stopped_for_long_is_not_waited_for_and_finds_out(location: str):
    store = store_postgres.connect(location)
    child = subprocess.Popen(
        [sys.executable, "-c", SLEEPER, location],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None and child.stdin is not None
    assert child.stdout.readline() == "kept\n"
    derived.put(store, {digest(b"x"): b"x"})
    store._blobs._lock.limit_s = 1.0
    with pytest.raises(Unavailable, match=f"held by process {child.pid} "), store._blobs.exclusive():
        pass  # it is awake, and renews what it has
    store._blobs._lock.limit_s = 60.0
    child.send_signal(signal.SIGSTOP)
    store.collect(set)
    child.send_signal(signal.SIGCONT)
    _, told = child.communicate("go on\n", timeout=60)
    assert child.returncode == 1
    assert "another one collected blobs meanwhile" in told
    assert seqs(undamaged_entries(store.open("s"))) == [1]
    store.close()


def test_a_damaged_blob_and_a_damaged_line_are_found_out(location: str, admin: psycopg.Connection):
    store = store_postgres.connect(location)
    log = store.create("s", [start("s")])
    log.append([note("right")], after=0, head=0)
    packed, raw = b"text " * 1000, bytes(range(256))
    derived.put(store, {digest(packed): packed, digest(raw): raw})
    admin.execute(
        "update turnlog.piece set data = overlay(data placing '\\xff' from 20) from turnlog.blob b "
        "where piece.num = b.num and piece.tenant = b.tenant and b.tenant = %s",
        (store._tenant,),
    )
    for data in (packed, raw):
        with pytest.raises(turnlog.Corrupt):
            store.get(digest(data))
    admin.execute(
        "update turnlog.entry set line = replace(convert_from(line, 'UTF8'), 'right', 'wrong')::bytea "
        "where session = %s and seq = 2",
        (log._rows.num,),
    )
    [_, damage, entry] = log.read()
    assert (damage.kind, damage.seq, entry.text, entry.unverified) == ("edited", 2, "wrong", True)
    store.close()


def test_a_file_that_fails_half_way_leaves_none_of_its_pieces(database: str):
    """Whoever skips the file commits the rest."""
    reader, writer = os.pipe2(os.O_NONBLOCK)
    size = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 1 << 20)
    assert os.write(writer, b"x" * size) == size
    store = store_postgres.connect(database)
    with store.add() as add:
        with pytest.raises(BlockingIOError):
            add(OpenFile(reader, 3 << 20))
        add(b"another")
    assert store.get(digest(b"another")) == b"another"
    with psycopg.connect(database) as base:
        assert base.execute("select count(*) from turnlog.piece").fetchone() == (1,)
    store.close()
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize(("how", "where"), [("keeping", "_enter"), ("keeping", "_leave"), ("collect", "_enter")])
def test_an_interrupt_at_the_lock_of_the_blobs_locks_nobody_out(
    database: str, where: str, how: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(BlobLease, "limit_s", 5)
    store = store_postgres.connect(database)
    name = digest(b"one")

    def interrupt(frame: Any, event: str, arg: Any) -> None:
        if frame.f_code.co_name == where and frame.f_code.co_filename.endswith("sharing.py"):
            sys.settrace(None)
            raise KeyboardInterrupt

    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            if how == "keeping":
                with store.keeping():
                    pass
            else:
                store.collect(lambda: {name})
    finally:
        sys.settrace(before)
    with store.keeping():
        derived.put(store, {name: b"one"})
    if where == "_enter":  # a lease that was not given back ends by itself, later
        store.collect(lambda: {name})
    assert store.get(name) == b"one"
    store.close()


def test_a_server_that_goes_away_does_not_hide_why_a_write_was_given_up(location: str, admin: psycopg.Connection):
    """The tables of a caller: its own error comes out, not that of the rollback."""
    store = store_postgres.connect(location)
    tables = store.dedicated("test")
    with pytest.raises(ZeroDivisionError), tables.writing():
        [(pid,)] = tables.rows("select pg_backend_pid()")
        admin.execute("select pg_terminate_backend(%s, 5000)", (pid,))
        raise ZeroDivisionError
    assert tables.rows("select 1") == [(1,)]
    store.close()
