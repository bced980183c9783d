"""The short way to run a statement: prepared once, whatever the long way does on the same connection."""

import struct
from collections.abc import Iterator

import psycopg
import pytest

from tests.pgserver import Server
from turnlog.store import postgres as store_postgres
from turnlog.store.postgres.connection import Connection, Statement, array


@pytest.fixture
def connection(postgres: Server) -> Iterator[Connection]:
    store = store_postgres.connect(postgres.url)
    connection = store._pool.connect()
    yield connection
    connection.close()
    store.close()


def int8(number: int) -> bytes:
    return struct.pack(">q", number)


def test_statements_are_found_again_after_a_rollback_made_psycopg_forget_all_of_them(connection: Connection):
    one, two = (Statement.of(f"select {number}::int8 * $1", ["int8"]) for number in (1, 2))

    def ask(statement: Statement) -> int:
        return struct.unpack(">q", connection.call(statement, [int8(21)]).get_value(0, 0))[0]

    assert ask(one) == 21
    for _ in range(3):
        with pytest.raises(KeyError), connection.transaction():
            connection.execute("select 1")
            raise KeyError
        connection.execute("select 1")  # only now they are forgotten
        connection.execute("select 2")
        assert [ask(two), ask(one), ask(two), ask(one)] == [42, 21, 42, 21]
        with connection.transaction():
            assert [ask(one), ask(two)] == [21, 42]


def test_arrays_arrive_as_they_are(connection: Connection):
    statement = Statement.of("select array_length($1, 1), ($1)[2], ($2)[3]", ["bytea[]", "int8[]"])
    items, numbers = [b"", b"\0\xff", b"x" * 1000], [1, -(1 << 62), 7]
    done = connection.call(statement, [array("bytea", items), array("int8", list(map(int8, numbers)))])
    assert [done.get_value(0, 0), done.get_value(0, 1), done.get_value(0, 2)] == [
        struct.pack(">i", 3),
        b"\0\xff",
        int8(7),
    ]


def test_an_error_of_the_server_leaves_the_connection_usable(connection: Connection):
    statement = Statement.of("select 1 / $1", ["int8"])
    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.call(statement, [int8(0)])
    assert connection.call(statement, [int8(1)]).get_value(0, 0) == int8(1)
