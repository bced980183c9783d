"""The store in PostgreSQL: the same sessions on many machines.

A session is a row with the end of its log. An append is one statement that moves that end and inserts the lines, if the
end is where the writer expects it. Everything that is acknowledged has been committed.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, LiteralString, NamedTuple

import psycopg

from turnlog.errors import TurnlogError
from turnlog.log.draft import Draft
from turnlog.log.part import Fork
from turnlog.store import Clock, now_ms
from turnlog.store.capability import Following
from turnlog.store.postgres import tenants
from turnlog.store.postgres.adopting import Adoption, stamped_from_lines
from turnlog.store.postgres.blobs import PostgresBlobs
from turnlog.store.postgres.creating import CREATE, MORE, portions, row_of
from turnlog.store.postgres.dedicated import DedicatedConnection
from turnlog.store.postgres.erasing import PostgresErasing
from turnlog.store.postgres.lease import Leases
from turnlog.store.postgres.listing import Listing
from turnlog.store.postgres.log import PostgresLog
from turnlog.store.postgres.names import id_text, key_of
from turnlog.store.postgres.pool import Connection, Connections, Location, Pool
from turnlog.store.postgres.problem import as_error, word_of
from turnlog.store.postgres.purge import purge
from turnlog.store.postgres.rows import LogEnd, LogRow, LogRows, Stamped, stamp
from turnlog.store.postgres.schema import bring_up_to_date, tenant_if_current, tenant_of
from turnlog.store.postgres.sharing import BlobLease
from turnlog.store.postgres.watch import ServerThreads, Watch
from turnlog.store.refusal import id_ambiguous, id_in_trash, id_taken, refuse_other_end, session_missing, tenant_missing
from turnlog.store.tenant import DroppedTenant, refuse_guest

_PAGE = 2000

_ROW: LiteralString = "select num, root, last_seq, last_ms, made from turnlog.session where tenant = %s"
_BY_KEY: LiteralString = _ROW + " and place = %s and key = %b"
_BY_KEY_AND_FIRST: LiteralString = _BY_KEY + " and coalesce(first_key, key) = %b"
_BY_FIRST: LiteralString = _ROW + " and coalesce(first_key, key) = %b"
_ASIDE: LiteralString = _BY_FIRST + " and (place = 'base' or key = %b)"
_MARK_CATALOG = "update turnlog.own_sessions set is_deleted = %s where id = %s"
_MOVE = """
update turnlog.session set place = %s, deleted_ms = %s
where tenant = %s and key = %b and place = %s and last_seq = coalesce(%s, last_seq) returning num
"""
_HOLDER = """
select id from turnlog.session where tenant = %s and place = 'live' and exists (
    select from turnlog.entry as e
    where e.tenant = session.tenant and e.root = session.root and e.session = session.num and e.key = %b)
limit 1
"""


class _SessionRow(NamedTuple):
    """The columns of `_ROW`."""

    num: int
    root: int
    last_seq: int
    last_ms: int
    made: uuid.UUID
    """The id of the attempt that created the log."""


def connect(
    location: str,
    *,
    durability: str = "fsync",
    clock: Clock = now_ms,
    connections: int = 8,
    patience: float = 15.0,
) -> PostgresStore:
    """Return the store in a database: `postgresql://user@host/name`, with `?tenant=…` for a tenant's part.

    At most `connections` are in use at once, by all tenants together. A statement without an answer after `patience`
    seconds is an error. With `durability="flush"` a commit does not wait for the server's disk.
    """
    address = Location(location)
    server = Connections(address, size=connections, patience=patience, durable=durability == "fsync")
    pool = Pool(server, address.tenant)
    try:
        # The first connection does not wait for an unreachable server: a wrong address should fail at once.
        connection = pool.connect()
    except psycopg.Error as error:
        raise as_error(error, "connecting", pool.server) from error
    try:
        tenant = tenant_if_current(connection, address.tenant)
        if tenant is None:
            bring_up_to_date(connection, pool.server)
            tenant = tenant_of(connection, address.tenant)
    except psycopg.Error as error:
        connection.close()
        raise as_error(error, "connecting", pool.server) from error
    except BaseException:
        connection.close()
        raise
    pool.give(connection)
    return PostgresStore(pool, tenant, clock, ServerThreads(server))


class PostgresStore:
    """See `Store`: the sessions of one tenant. A guest store shares the connections and threads of its host store."""

    backend = "postgres"

    def __init__(
        self, pool: Pool, tenant: int, clock: Clock, threads: ServerThreads, *, is_guest: bool = False
    ) -> None:
        self._pool = pool
        self._tenant = tenant
        self._clock = clock
        self._threads = threads
        self._is_guest = is_guest
        self._leases = Leases(pool, tenant, threads.renewal)
        self._watch = Watch(self._leases, threads)

        self._blobs = blobs = PostgresBlobs(pool, tenant, BlobLease(self._leases))
        self.add, self.put, self.get, self.has, self.stream = blobs.add, blobs.put, blobs.get, blobs.has, blobs.stream
        self.keeping, self.collect = blobs.keeping, blobs.collect
        self.lacking, self.packs, self.unneeded = blobs.lacking, blobs.packs, blobs.unneeded

        erasing = PostgresErasing(pool, tenant)
        self.erase, self.erasures = erasing.erase, erasing.erasures
        self.unsettled, self.settle = erasing.unsettled, erasing.settle

        listing = Listing(pool, tenant)
        self.listing, self.ids, self.newest = listing.listing, listing.ids, listing.newest

    # ── logs ──────────────────────────────────────────────────────────────────────────────────────

    def create(self, session_id: str, drafts: list[Draft], *, seq: int = 1, parent: Fork | None = None) -> PostgresLog:
        new = stamp(drafts, floor=seq - 1, at=0, now=self._clock(), head=0)
        return self._begin(session_id, new, parent, "live")

    def _begin(self, session_id: str, new: Stamped, parent: Fork | None, place: str) -> PostgresLog:
        values = {**row_of(self._tenant, session_id, new, parent), "name": self._pool.tenant}
        lines, *more = portions(new)

        def insert(connection: Connection, place: str) -> tuple[int, int] | None:
            with connection.transaction() if more or self._leases.kept is not None else nullcontext():
                self._leases.kept_in(connection)
                row = connection.execute(CREATE, {**values, **lines, "place": place}).fetchone()
                if row is None:
                    return None
                num, root = row
                for rest in more:
                    connection.execute(MORE, {"num": num, "root": root, **values, **rest})
                return num, root

        def job(connection: Connection, again: bool) -> tuple[int, int]:
            # A deleted session is kept aside if another deleted session has the same id.
            for where in (place, "base") if place == "deleted" else (place,):
                if (numbers := insert(connection, where)) is not None:
                    return numbers
            existing = _row(connection, _BY_FIRST, (self._tenant, values["first_key"] or values["key"]))
            if again and existing is not None and existing.made == values["made"]:
                return existing.num, existing.root
            if existing is None and _row(connection, _BY_KEY, (self._tenant, place, values["key"])) is None:
                if parent is None:
                    raise tenant_missing(self._pool.tenant)
                raise session_missing(parent.session, for_fork=True)
            raise id_taken(session_id)

        num, root = self._pool.run(f"creating session {session_id}", job)
        return self._log(LogRow(session_id, num, root, LogEnd(new.seqs[-1], new.last_at)))

    def _log(self, row: LogRow) -> PostgresLog:
        return PostgresLog(self._pool, self._watch, self._clock, row)

    def adopt(
        self,
        session_id: str,
        lines: list[bytes],
        *,
        after: int,
        first: str | None = None,
        parent: Fork | None = None,
        deleted: bool = False,
    ) -> None:
        if not after:
            self._begin(session_id, stamped_from_lines(lines, after=0), parent, "deleted" if deleted else "live")
            return
        row = self._find(session_id, first)
        if row is None:
            raise session_missing(session_id)
        rows = LogRows(self._pool, self._watch, LogRow(session_id, row.num, row.root))
        Adoption(rows, self._watch.leases, lines, after, deleted).run()

    def _find(self, session_id: str, first: str | None) -> _SessionRow | None:
        """Return the row of the log that `open` reads, whatever its place is."""
        key = key_of(session_id)
        if first is None:
            for place in ("live", "deleted"):
                if (row := self._row(session_id, _BY_KEY, place, key)) is not None:
                    return row
        return self._row(session_id, _ASIDE, key if first is None else key_of(first), key)

    def _row(self, session_id: str, query: LiteralString, *values: object) -> _SessionRow | None:
        rows = self._pool.rows(f"opening session {session_id}", query, (self._tenant, *values))
        return _SessionRow(*rows[0]) if rows else None

    def open(self, session_id: str, *, read_only: bool = False, first: str | None = None) -> PostgresLog:
        if read_only:
            row = self._find(session_id, first)
            if row is None:
                raise session_missing(session_id, for_fork=True)
            return self._log(LogRow(session_id, row.num, row.root))
        key = key_of(session_id)
        if first is None:
            row = self._row(session_id, _BY_KEY, "live", key)
        else:
            row = self._row(session_id, _BY_KEY_AND_FIRST, "live", key, key_of(first))
        if row is None:
            deleted = self._row(session_id, _BY_KEY, "deleted", key)
            raise session_missing(session_id, is_deleted=deleted is not None)
        return self._log(LogRow(session_id, row.num, row.root, LogEnd(row.last_seq, row.last_ms)))

    def all_logs(self) -> Iterator[PostgresLog]:
        query = "select num, id, root from turnlog.session where tenant = %s and num > %s order by num limit %s"
        last = 0
        while page := self._pool.rows("listing sessions", query, (self._tenant, last, _PAGE)):
            for last, session_id, root in page:
                name = id_text(bytes(session_id))
                yield self._log(LogRow(name, last, root))

    def delete(self, session_id: str, *, after: int | None = None) -> None:
        self._move(session_id, "live", "deleted", after)

    def restore(self, session_id: str) -> None:
        self._move(session_id, "deleted", "live")

    def _move(self, session_id: str, source: str, target: str, after: int | None = None) -> None:
        key = key_of(session_id)

        def job(connection: Connection, again: bool) -> bool:
            try:
                moment = self._clock() if target == "deleted" else None
                row = connection.execute(_MOVE, (target, moment, self._tenant, key, source, after)).fetchone()
            except psycopg.errors.UniqueViolation:
                raise (id_in_trash if target == "deleted" else id_taken)(session_id) from None
            if row is not None:
                connection.execute(_MARK_CATALOG, (target == "deleted", row[0]))
                return True
            unmoved = _row(connection, _BY_KEY, (self._tenant, source, key))
            if unmoved is not None:
                refuse_other_end(session_id, unmoved.last_seq, after)
            # If the answer was lost, our first attempt moved the session.
            return again and _row(connection, _BY_KEY, (self._tenant, target, key)) is not None

        if not self._pool.run(f"moving session {session_id}", job):
            raise session_missing(session_id)

    def purge(self, session_id: str, *, deleted: bool | None = None, after: int | None = None) -> None:
        places = [place for place, is_it in (("live", False), ("deleted", True)) if deleted in (None, is_it)]

        def job(connection: Connection, again: bool) -> bool:
            with connection.transaction():
                count = purge(connection, self._tenant, session_id, places, after)
                if count > 1:
                    raise id_ambiguous(session_id)
                return bool(count) or again

        if not self._pool.run(f"purging session {session_id}", job):
            raise session_missing(session_id)

    def holder_of(self, entry_id: str) -> str | None:
        rows = self._pool.rows("searching for an entry", _HOLDER, (self._tenant, key_of(entry_id)))
        return id_text(bytes(rows[0][0])) if rows else None

    # ── the rest ──────────────────────────────────────────────────────────────────────────────────

    def disk(self) -> dict[str, int]:
        query = "select place, sum(bytes)::bigint from turnlog.session where tenant = %s group by place"
        sizes: dict[str, int] = {
            place: size for place, size in self._pool.rows("measuring the sizes of logs", query, (self._tenant,))
        }
        return {
            "logs": sizes.get("live", 0) + sizes.get("base", 0),
            "trash": sizes.get("deleted", 0),
            "blobs": self._blobs.size(),
        }

    def load(self, name: str) -> bytes:
        query = "select content from turnlog.derived where tenant = %s and name = %s"
        rows = self._pool.rows("loading derived data", query, (self._tenant, name))
        return bytes(rows[0][0]) if rows else b""

    def save(self, name: str, data: bytes) -> None:
        query = (
            "insert into turnlog.derived (tenant, name, content) values (%s, %s, %b) "
            "on conflict (tenant, name) do update set content = excluded.content"
        )

        def job(connection: Connection, again: bool) -> None:
            del again
            connection.execute(query, (self._tenant, name, data))

        self._pool.run("saving derived data", job)

    def health(self) -> dict[str, Any]:
        """See `ReportHealth.health`: whether a commit succeeds, and if not, the `reason` as one word."""
        facts: dict[str, Any] = {"backend": self.backend, "location": f"postgresql://{self._pool.server}"}
        began = time.monotonic()
        try:
            facts |= self._condition()
            if not facts["standby"]:
                self.save("health", b"")
        except TurnlogError as error:
            return {**facts, "ok": False, "reason": word_of(error), "problem": str(error), "hint": error.hint}
        facts["answered_ms"] = round((time.monotonic() - began) * 1000, 1)
        is_safe = facts["fsync"] == facts["full_page_writes"] == "on"
        if facts["standby"] or not is_safe:
            return {**facts, "ok": False, "reason": "standby" if facts["standby"] else "unsafe"}
        return {**facts, "ok": True}

    def _condition(self) -> dict[str, Any]:
        query = (
            "select count(*), current_setting('server_version'), current_setting('synchronous_commit'), "
            "current_setting('synchronous_standby_names'), current_setting('fsync'), "
            "current_setting('full_page_writes'), pg_is_in_recovery() "
            "from turnlog.session where tenant = %s and place = 'live'"
        )
        names = (
            "sessions", "server", "synchronous_commit", "synchronous_standby_names", "fsync", "full_page_writes",
            "standby",
        )  # fmt: skip
        [row] = self._pool.rows("reading the state of the server", query, (self._tenant,))
        return dict(zip(names, row, strict=True)) | {"tenant": self._pool.tenant, "following": self.following}

    def dedicated(self, name: str) -> DedicatedConnection:
        return DedicatedConnection(self._pool, self._leases, name)

    @property
    def following(self) -> Following:
        return "asking" if self._pool.connections.is_pooled else "told"

    def tenant(self, name: str, *, create: bool = True) -> PostgresStore:
        refuse_guest(self._pool.tenant)
        pool = Pool(self._pool.connections, tenants.valid_tenant(name))
        return PostgresStore(pool, tenants.number_of(pool, create=create), self._clock, self._threads, is_guest=True)

    def tenant_location(self, name: str) -> str:
        refuse_guest(self._pool.tenant)
        return self._pool.connections.location.of(name)

    def tenants(self) -> list[str]:
        refuse_guest(self._pool.tenant)
        return tenants.names(self._pool)

    def drop_tenant(self, name: str) -> DroppedTenant:
        refuse_guest(self._pool.tenant)
        return tenants.drop(self._pool, name)

    def close(self) -> None:
        if not self._is_guest:
            self._threads.close()
            self._pool.connections.close()


def _row(connection: Connection, query: LiteralString, values: tuple[object, ...]) -> _SessionRow | None:
    row = connection.execute(query, values).fetchone()
    return None if row is None else _SessionRow(*row)
