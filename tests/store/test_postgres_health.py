"""`home.health()` says in a word what is wrong with a server, and within the time it was given."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

import turnlog
from tests.pgserver import Server, impatient
from turnlog.store import derived
from turnlog.store import postgres as store_postgres
from turnlog.store.postgres import problem

TROUBLES = {
    "connections": ("alter role {role} connection limit 0", "out of connections"),
    "login": ("alter role {role} nologin", "check user and password"),
    "standby": ("alter role {role} set default_transaction_read_only = on", "target_session_attrs=read-write"),
    "slow": ("lock table turnlog.derived in access exclusive mode", "too slow or waits for a lock"),
    "privilege": ("revoke insert on turnlog.derived from {role}", "docs/guide/postgres.md"),
    "tables": ("alter table turnlog.session rename to meeting", "a newer turnlog"),
}


@pytest.fixture
def role(postgres: Server) -> str:
    return postgres.role()


@pytest.fixture
def database(postgres: Server, role: str) -> str:
    database = postgres.database(f"d{uuid.uuid4().hex}")
    turnlog.open(database).close()
    postgres.grant(database, role)
    return database


@contextmanager
def trouble(database: str, role: str, sql: str) -> Iterator[None]:
    with psycopg.connect(database) as admin:
        admin.execute(sql.format(role=role))
        if not sql.startswith("lock"):
            admin.commit()
        yield


@pytest.mark.parametrize("word", TROUBLES)
def test_what_is_wrong_is_said_in_a_word(database: str, role: str, word: str):
    sql, hint = TROUBLES[word]
    store = store_postgres.connect(database.replace("postgres@", f"{role}@"))
    before = derived.health(store)
    assert (before["ok"], before.get("reason")) == (True, None)
    with trouble(database, role, sql), impatient(store):
        health = derived.health(store)
    assert (health["ok"], health["reason"]) == (False, word)
    assert hint in health["hint"]
    assert health["location"].endswith(database.rpartition("@")[2])
    store.close()


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_server_that_does_not_keep_what_it_says_is_not_healthy(setting: str):
    server = Server(**{setting: "off"})
    try:
        with turnlog.open(server.url) as home:
            health = home.health()
        assert (health["ok"], health["reason"], health[setting]) == (False, "unsafe", "off")
    finally:
        server.remove()


@pytest.mark.parametrize(
    ("message", "word"),
    [
        ('FATAL:  the database system is starting up', "starting"),
        ('FATAL:  the database system is in recovery mode', "starting"),
        ('could not translate host name "db" to address: Name or service not known', "no_host"),
        ('FATAL:  database "none" does not exist', "no_database"),
        ("server closed the connection unexpectedly", "away"),
    ],
)  # fmt: skip
def test_where_there_is_no_connection_the_words_tell(message: str, word: str):
    """As libpq says them: there is no sqlstate then."""
    assert problem.reason(psycopg.OperationalError(message)).word == word
