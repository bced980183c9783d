"""Leases: rows that name a holder and when the lease expires. They are locks that need no open connection.

A holder keeps renewing its row. If it stops, because it died or sleeps, a waiting process removes the row. A holder
proves its lease by its row, inside the writing transaction, never by its own clock: one that wakes up late finds that
the row is gone, and has written nothing.
"""

from __future__ import annotations

import os
import threading
import uuid

import psycopg

from turnlog.errors import NotFound, TurnlogError, Unavailable
from turnlog.store.forked import renew_after_fork
from turnlog.store.postgres.pool import Connection, Pool

TERM_S = 30.0
"""How long a lease is valid without renewal."""
LIMIT_S = 60.0
"""How long to wait for a lease that another process keeps renewing."""
_BEAT_S = TERM_S / 3

_ADD_EXCLUSIVE_ROW = """
insert into turnlog.lease (tenant, name, who, until) values (%s, %s, '', '-infinity') on conflict do nothing
"""
# `for update` reads the row again after it waited for the lock, so the current holder is returned.
_LOCK_EXCLUSIVE_ROW = """
select holder, who, until > clock_timestamp() from turnlog.lease where tenant = %s and name = %s for update
"""
_SET_EXCLUSIVE = """
update turnlog.lease set holder = %s, who = %s, until = clock_timestamp() + make_interval(secs => %s)
where tenant = %s and name = %s
"""
_RENEW = """
update turnlog.lease set until = clock_timestamp() + make_interval(secs => %s)
where tenant = %s and name = %s and holder = %s
"""
_FREE = "update turnlog.lease set holder = null where tenant = %s and name = %s and holder = %s"
_TAKE_SHARED = """
with free as (
    select from turnlog.lease where tenant = %(tenant)s and name = %(lock)s and holder is null for share
)
insert into turnlog.lease (tenant, name, holder, who, until)
select %(tenant)s, %(name)s, %(holder)s, %(who)s, clock_timestamp() + make_interval(secs => %(term)s) from free
on conflict (tenant, name) do update set until = excluded.until
"""
_SHARED_HOLDERS = """
select name, who, until > clock_timestamp() from turnlog.lease
where tenant = %s and name > %s and name < %s order by until desc for update
"""
_HELD = "select from turnlog.lease where tenant = %s and name = %s for key share"
_DROP = "select turnlog.drop_leases(%s::text[])"
READ_ONLY = (psycopg.errors.ReadOnlySqlTransaction, psycopg.errors.FeatureNotSupported)
"""The errors of a standby when a lease is requested."""


def _who() -> str:
    return f"process {os.getpid()} on {os.uname().nodename}"


class Lease:
    """A lease on a lock. The exclusive holder has the row with the lock's name; each shared holder has its own row."""

    def __init__(self, leases: Leases, lock: str, *, shared: bool) -> None:
        self.lock = lock
        self.holder = uuid.uuid4()
        self.name = f"{lock} {self.holder.hex}" if shared else lock
        self.leases = leases
        self.collections = 0
        """The number of blob collections when the lease was taken."""

    def take(self, connection: Connection) -> str | None:
        """Try to take the lease. Returns None, or who holds it."""
        if self.name == self.lock:
            return self._take_exclusive(connection)
        if self._take_shared(connection):
            return None
        with connection.transaction():
            who = self._lock_exclusive_row(connection)
        return who or (None if self._take_shared(connection) else "another process")

    def _take_shared(self, connection: Connection) -> bool:
        values = {
            "tenant": self.leases.tenant, "lock": self.lock, "name": self.name, "holder": self.holder, "who": _who(),
            "term": TERM_S,
        }  # fmt: skip
        return bool(connection.execute(_TAKE_SHARED, values).rowcount)

    def _lock_exclusive_row(self, connection: Connection) -> str | None:
        """Inside a transaction: return another exclusive holder. If None, there will be none until that ends."""
        tenant = self.leases.tenant
        connection.execute(_ADD_EXCLUSIVE_ROW, (tenant, self.lock))
        row = connection.execute(_LOCK_EXCLUSIVE_ROW, (tenant, self.lock)).fetchone()
        assert row is not None
        holder, who, is_renewed = row
        if holder == self.holder:
            return None  # an earlier attempt of ours took it, and its answer was lost
        if holder is not None and is_renewed:
            return who
        if holder is not None:
            connection.execute(_FREE, (tenant, self.lock, holder))
        return None

    def _take_exclusive(self, connection: Connection) -> str | None:
        tenant = self.leases.tenant
        with connection.transaction():
            who = self._lock_exclusive_row(connection)
            if who is not None:
                return who
            sharers = connection.execute(_SHARED_HOLDERS, (tenant, f"{self.lock} ", f"{self.lock}!")).fetchall()
            if sharers:
                _, who, is_renewed = sharers[0]
                if is_renewed:
                    return who
                connection.execute(_DROP, ([name for name, _, _ in sharers],))
            connection.execute(_SET_EXCLUSIVE, (self.holder, _who(), TERM_S, tenant, self.lock))
        return None

    def renew(self, connection: Connection) -> bool:
        """Renew the lease. Returns whether it is still ours; inside a transaction, it stays so until that ends."""
        values = (TERM_S, self.leases.tenant, self.name, self.holder)
        return bool(connection.execute(_RENEW, values).rowcount)

    def is_held(self, connection: Connection) -> bool:
        """Whether the lease is still ours, checked without blocking other such checks."""
        return connection.execute(_HELD, (self.leases.tenant, self.name)).fetchone() is not None

    def drop(self, connection: Connection) -> bool:
        """Release the lease. Returns whether it was still ours."""
        if self.name == self.lock:
            return bool(connection.execute(_FREE, (self.leases.tenant, self.lock, self.holder)).rowcount)
        return bool(connection.execute(_DROP, ([self.name],)).fetchall())


class Renewal:
    """A thread that renews the leases of this process, of all tenants, as long as there are any."""

    def __init__(self) -> None:
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """Reset in a child process: the leases belong to the parent."""
        self._changed = threading.Condition()
        self._renewed: dict[Lease, None] = {}
        self._thread: threading.Thread | None = None
        self._is_over = False

    def start_renewing(self, lease: Lease) -> None:
        """Renew a lease until `stop_renewing`."""
        with self._changed:
            self._renewed[lease] = None
            if self._thread is None and not self._is_over:
                self._thread = threading.Thread(target=self._run, name="turnlog leases", daemon=True)
                self._thread.start()

    def stop_renewing(self, lease: Lease) -> None:
        """Stop renewing a lease."""
        with self._changed:
            self._renewed.pop(lease, None)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_over, timeout=_BEAT_S)
                due = list(self._renewed)
                if self._is_over or not due:
                    self._thread = None
                    return
            for lease in due:
                try:
                    lease.leases.pool.run(
                        "renewing a lease", lambda connection, _, lease=lease: lease.renew(connection)
                    )
                except TurnlogError:
                    pass  # the holder finds out when it uses the lease

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()


class Leases:
    """The leases of this process for one tenant."""

    def __init__(self, pool: Pool, tenant: int, renewal: Renewal) -> None:
        self.pool = pool
        self.tenant = tenant
        self.start_renewing, self.stop_renewing = renewal.start_renewing, renewal.stop_renewing
        self._channel: str | None = None
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """Reset in a child process: the leases belong to the parent."""
        self.kept: Lease | None = None
        """The lease that protects blobs for this process: entries that refer to blobs are only written with it."""

    def channel(self, connection: Connection) -> str:
        """Return the channel on which this tenant's processes notify each other."""
        if self._channel is None:
            row = connection.execute("select channel from turnlog.tenant where num = %s", (self.tenant,)).fetchone()
            if row is None:
                raise NotFound(f"tenant {self.pool.tenant!r:.80} is gone", hint="it was dropped")
            self._channel = f"turnlog_{row[0].hex}"
        return self._channel

    def collections(self, connection: Connection) -> int:
        """Return the number of blob collections: while it is unchanged, all blobs still exist."""
        row = connection.execute("select collections from turnlog.tenant where num = %s", (self.tenant,)).fetchone()
        return row[0] if row is not None else 0

    def kept_in(self, connection: Connection) -> Lease | None:
        """Inside a transaction: return the lease that protects blobs, or raise. None if there is no lease."""
        lease = self.kept
        if lease is None or lease.is_held(connection):
            return lease
        # A crash of the server takes all leases away. That is fine as long as nobody collected anything.
        if lease.take(connection) is not None or self.collections(connection) != lease.collections:
            raise lost()
        return lease


def lost() -> Unavailable:
    """Return the error for an expired lease: blobs that it protected may have been collected."""
    return Unavailable(
        "this process did not answer while it kept blobs, and another one collected blobs meanwhile",
        hint="do it again: blobs that it refers to may be gone",
    )
