"""Logs and blobs in PostgreSQL: the same sessions on many machines.

A session is a row that says where its log ends; an append is one statement that moves that end and inserts the
lines, if the end is where the writer thinks it is. Everything that is acknowledged has been committed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, LiteralString

import psycopg

from turnlog.errors import TurnlogError
from turnlog.log.draft import Draft
from turnlog.log.entry import Fork
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
from turnlog.store.refusal import id_ambiguous, id_in_trash, id_taken, refuse_longer, session_missing, tenant_missing
from turnlog.store.tenant import DroppedTenant, refuse_guest

_PAGE = 2000

_ROW: LiteralString = "select num, root, last_seq, last_ms, made from turnlog.session where tenant = %s"
_LIVE: LiteralString = _ROW + " and place = %s and key = %b"
_FIRST: LiteralString = _ROW + " and coalesce(first_key, key) = %b"
_ASIDE: LiteralString = _FIRST + " and (place = 'base' or key = %b)"
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


def connect(
    location: str,
    *,
    durability: str = "fsync",
    clock: Clock = now_ms,
    connections: int = 8,
    patience: float = 15.0,
) -> PostgresStore:
    """The store in a database: `postgresql://user@host/name`, with `?tenant=…` for the part of a tenant.

    At most `connections` are in use at once, by all tenants together. What the server has not answered after
    `patience` seconds is an error. With `durability="flush"` a commit does not wait for the server's disk.
    """
    where = Location(location)
    server = Connections(where, size=connections, patience=patience, durable=durability == "fsync")
    pool = Pool(server, where.tenant)
    try:
        # The first connection does not wait for a server that is away: a wrong address should show at once.
        connection = pool.connect()
    except psycopg.Error as error:
        raise as_error(error, "connecting", pool.place) from error
    try:
        tenant = tenant_if_current(connection, where.tenant)
        if tenant is None:
            bring_up_to_date(connection, pool.place)
            tenant = tenant_of(connection, where.tenant)
    except psycopg.Error as error:
        connection.close()
        raise as_error(error, "connecting", pool.place) from error
    except BaseException:
        connection.close()
        raise
    pool.give(connection)
    return PostgresStore(pool, tenant, clock, ServerThreads(server))


class PostgresStore:
    """See `Store`: the sessions of one tenant. One that came from another has its connections and threads."""

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

        def job(connection: Connection, again: bool) -> tuple[int, int]:
            # A deleted one is kept aside where another deleted one is called the same.
            for where in (place, "base") if place == "deleted" else (place,):
                with connection.transaction() if more or self._leases.kept is not None else nullcontext():
                    self._leases.kept_in(connection)
                    row = connection.execute(CREATE, {**values, **lines, "place": where}).fetchone()
                    if row is not None:
                        for rest in more:
                            connection.execute(MORE, {"num": row[0], "root": row[1], **values, **rest})
                if row is not None:
                    return row[0], row[1]
            first_row = connection.execute(_FIRST, (self._tenant, values["first_key"] or values["key"])).fetchone()
            if again and first_row is not None and first_row[4] == values["made"]:
                return first_row[0], first_row[1]
            named = connection.execute(_LIVE, (self._tenant, place, values["key"])).fetchone()
            if first_row is None and named is None:
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
        rows = LogRows(self._pool, self._watch, LogRow(session_id, row[0], row[1]))
        Adoption(rows, self._watch.leases, lines, after, deleted).run()

    def _find(self, session_id: str, first: str | None) -> tuple[Any, ...] | None:
        key = key_of(session_id)
        ways: list[tuple[LiteralString, tuple[Any, ...]]] = [
            (_ASIDE, (self._tenant, key if first is None else key_of(first), key))
        ]
        if first is None:
            ways = [(_LIVE, (self._tenant, "live", key)), (_LIVE, (self._tenant, "deleted", key)), *ways]
        for query, values in ways:
            if rows := self._pool.rows(f"opening session {session_id}", query, values):
                return rows[0]
        return None

    def open(self, session_id: str, *, read_only: bool = False, first: str | None = None) -> PostgresLog:
        if read_only:
            row = self._find(session_id, first)
            if row is None:
                raise session_missing(session_id, for_fork=True)
            return self._log(LogRow(session_id, row[0], row[1]))
        values = (self._tenant, "live", key_of(session_id))
        rows = self._pool.rows(f"opening session {session_id}", _LIVE, values)
        if not rows:
            values = (self._tenant, "deleted", key_of(session_id))
            deleted = self._pool.rows(f"opening session {session_id}", _LIVE, values)
            raise session_missing(session_id, is_deleted=bool(deleted))
        num, root, last_seq, last_at, _ = rows[0]
        return self._log(LogRow(session_id, num, root, LogEnd(last_seq, last_at)))

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
            there = connection.execute(_LIVE, (self._tenant, source, key)).fetchone()
            if there is not None:
                refuse_longer(session_id, there[2], after)
            # If the answer was lost, it was us.
            return again and connection.execute(_LIVE, (self._tenant, target, key)).fetchone() is not None

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
        rows = self._pool.rows("looking for an entry", _HOLDER, (self._tenant, key_of(entry_id)))
        return id_text(bytes(rows[0][0])) if rows else None

    # ── the rest ──────────────────────────────────────────────────────────────────────────────────

    def disk(self) -> dict[str, int]:
        query = "select place, sum(bytes)::bigint from turnlog.session where tenant = %s group by place"
        sizes: dict[str, int] = {place: size for place, size in self._pool.rows("measuring", query, (self._tenant,))}
        return {
            "logs": sizes.get("live", 0) + sizes.get("base", 0),
            "trash": sizes.get("deleted", 0),
            "blobs": self._blobs.size(),
        }

    def load(self, name: str) -> bytes:
        query = "select content from turnlog.derived where tenant = %s and name = %s"
        rows = self._pool.rows("looking for something derived", query, (self._tenant, name))
        return bytes(rows[0][0]) if rows else b""

    def save(self, name: str, data: bytes) -> None:
        query = (
            "insert into turnlog.derived (tenant, name, content) values (%s, %s, %b) "
            "on conflict (tenant, name) do update set content = excluded.content"
        )

        def job(connection: Connection, again: bool) -> None:
            del again
            connection.execute(query, (self._tenant, name, data))

        self._pool.run("keeping something derived", job)

    def health(self) -> dict[str, Any]:
        """See `ReportHealth.health`: whether something can be committed, and if not, the `reason` in a word."""
        facts: dict[str, Any] = {"backend": self.backend, "location": f"postgresql://{self._pool.place}"}
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
        [row] = self._pool.rows("asking", query, (self._tenant,))
        return dict(zip(names, row, strict=True)) | {"tenant": self._pool.tenant, "following": self.following}

    def dedicated(self, name: str) -> DedicatedConnection:
        return DedicatedConnection(self._pool, self._leases, name)

    @property
    def following(self) -> Following:
        return "asking" if self._pool.connections.is_pooled else "told"

    def tenant(self, name: str, *, create: bool = True) -> PostgresStore:
        refuse_guest(self._pool.tenant)
        pool = Pool(self._pool.connections, tenants.checked(name))
        return PostgresStore(pool, tenants.number_of(pool, create=create), self._clock, self._threads, is_guest=True)

    def tenant_location(self, name: str) -> str:
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
