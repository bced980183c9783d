"""PostgreSQL keeps every promise of a store."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pgserver import Server
from turnlog.store import Clock, postgres
from turnlog.testing import StoreContract
from turnlog.testing.store.tenants import Tenants


class OnServer(StoreContract):
    """Every test is a tenant of its own, in one database."""

    @pytest.fixture(autouse=True)
    def on_server(self, postgres: Server) -> Iterator[None]:
        self.server = postgres
        yield

    def location(self) -> str:
        return f"{self.server.url}?tenant={uuid.uuid4()}"


class TestPostgres(OnServer):
    def connect(self, folder: Path, clock: Clock) -> postgres.PostgresStore:
        return postgres.connect(self.location(), clock=clock)


class TestPostgresWithoutSyncs(OnServer):
    """What survives the client, not a crash of the server, keeps every other promise."""

    def connect(self, folder: Path, clock: Clock) -> postgres.PostgresStore:
        return postgres.connect(self.location(), clock=clock, durability="flush")


class TestPostgresOnOneConnection(OnServer):
    """However few connections there are, nobody waits for himself."""

    def connect(self, folder: Path, clock: Clock) -> postgres.PostgresStore:
        return postgres.connect(self.location(), clock=clock, connections=1)


class TestPostgresWithTenants(Tenants):
    """A database of its own: the home of a tenant has no tenants."""

    @pytest.fixture(autouse=True)
    def on_server(self, postgres: Server) -> Iterator[None]:
        self.server = postgres
        yield

    def connect(self, folder: Path, clock: Clock) -> postgres.PostgresStore:
        return postgres.connect(self.server.database(f"host-{uuid.uuid4()}"), clock=clock)
