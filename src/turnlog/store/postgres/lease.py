"""Rows that say who may do what, and until when others have to believe it: locks that need no connection.

A holder goes on renewing its row. If it stops, because it died or sleeps, one that waits takes the row away. A holder
proves its lease by its row, inside the writing transaction, never by its own clock: one that wakes up late finds it
gone, and has written nothing.
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
"""So long others believe a row that nobody renews."""
LIMIT_S = 60.0
"""So long somebody waits for one that is renewed."""
_BEAT_S = TERM_S / 3

_NEW_GATE = """
insert into turnlog.lease (tenant, name, who, until) values (%s, %s, '', '-infinity') on conflict do nothing
"""
# A row that is locked is looked at again when the lock is there: who has it now, is what counts.
_GATE = """
select holder, who, until > clock_timestamp() from turnlog.lease where tenant = %s and name = %s for update
"""
_SET_GATE = """
update turnlog.lease set holder = %s, who = %s, until = clock_timestamp() + make_interval(secs => %s)
where tenant = %s and name = %s
"""
_RENEW = """
update turnlog.lease set until = clock_timestamp() + make_interval(secs => %s)
where tenant = %s and name = %s and holder = %s
"""
_FREE = "update turnlog.lease set holder = null where tenant = %s and name = %s and holder = %s"
_JOIN = """
with gate as (
    select from turnlog.lease where tenant = %(tenant)s and name = %(gate)s and holder is null for share
)
insert into turnlog.lease (tenant, name, holder, who, until)
select %(tenant)s, %(name)s, %(holder)s, %(who)s, clock_timestamp() + make_interval(secs => %(term)s) from gate
on conflict (tenant, name) do update set until = excluded.until
"""
_OTHERS = """
select name, who, until > clock_timestamp() from turnlog.lease
where tenant = %s and name > %s and name < %s order by until desc for update
"""
_HELD = "select from turnlog.lease where tenant = %s and name = %s for key share"
_DROP = "select turnlog.drop_leases(%s::text[])"
READ_ONLY = (psycopg.errors.ReadOnlySqlTransaction, psycopg.errors.FeatureNotSupported)
"""What a standby says to whoever wants a lease."""


def _who() -> str:
    return f"process {os.getpid()} on {os.uname().nodename}"


class Lease:
    """The right to one name, held alone; or together with others, each by a row of its own."""

    def __init__(self, leases: Leases, gate: str, *, together: bool) -> None:
        self.gate = gate
        self.holder = uuid.uuid4()
        self.name = f"{gate} {self.holder.hex}" if together else gate
        self.leases = leases
        self.collections = 0
        """How often blobs had been collected when it was taken."""

    def take(self, connection: Connection) -> str | None:
        """Try to have it; returns who has it otherwise."""
        if self.name == self.gate:
            return self._take_alone(connection)
        if self._join(connection):
            return None
        with connection.transaction():
            who = self._at_the_gate(connection)
        return who or (None if self._join(connection) else "somebody who was faster")

    def _join(self, connection: Connection) -> bool:
        values = {
            "tenant": self.leases.tenant, "gate": self.gate, "name": self.name, "holder": self.holder, "who": _who(),
            "term": TERM_S,
        }  # fmt: skip
        return bool(connection.execute(_JOIN, values).rowcount)

    def _at_the_gate(self, connection: Connection) -> str | None:
        """Inside a transaction: who else is alone; if nobody is, nobody will be until it ends."""
        tenant = self.leases.tenant
        connection.execute(_NEW_GATE, (tenant, self.gate))
        row = connection.execute(_GATE, (tenant, self.gate)).fetchone()
        assert row is not None
        holder, who, is_renewed = row
        if holder == self.holder:
            return None  # we have it, and the answer was lost
        if holder is not None and is_renewed:
            return who
        if holder is not None:
            connection.execute(_FREE, (tenant, self.gate, holder))
        return None

    def _take_alone(self, connection: Connection) -> str | None:
        tenant = self.leases.tenant
        with connection.transaction():
            who = self._at_the_gate(connection)
            if who is not None:
                return who
            others = connection.execute(_OTHERS, (tenant, f"{self.gate} ", f"{self.gate}!")).fetchall()
            if others and others[0][2]:
                return others[0][1]
            if others:
                connection.execute(_DROP, ([name for name, _, _ in others],))
            connection.execute(_SET_GATE, (self.holder, _who(), TERM_S, tenant, self.gate))
        return None

    def renew(self, connection: Connection) -> bool:
        """Whether it is still ours. Inside a transaction, it is until that ends."""
        values = (TERM_S, self.leases.tenant, self.name, self.holder)
        return bool(connection.execute(_RENEW, values).rowcount)

    def is_held(self, connection: Connection) -> bool:
        """The same, without making others wait who ask this as well."""
        return connection.execute(_HELD, (self.leases.tenant, self.name)).fetchone() is not None

    def drop(self, connection: Connection) -> bool:
        """Give it up; whether it was still ours."""
        if self.name == self.gate:
            return bool(connection.execute(_FREE, (self.leases.tenant, self.gate, self.holder)).rowcount)
        return bool(connection.execute(_DROP, ([self.name],)).fetchall())


class Renewal:
    """A thread that renews what this process holds, of whichever tenant, as long as it holds anything."""

    def __init__(self) -> None:
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """In a child process: what there is, is the parent's."""
        self._changed = threading.Condition()
        self._renewed: dict[Lease, None] = {}
        self._thread: threading.Thread | None = None
        self._is_over = False

    def keep(self, lease: Lease) -> None:
        """Renew it until `leave`."""
        with self._changed:
            self._renewed[lease] = None
            if self._thread is None and not self._is_over:
                self._thread = threading.Thread(target=self._run, name="turnlog leases", daemon=True)
                self._thread.start()

    def leave(self, lease: Lease) -> None:
        """Renew it no more."""
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
    """What this process holds of one tenant."""

    def __init__(self, pool: Pool, tenant: int, renewal: Renewal) -> None:
        self.pool = pool
        self.tenant = tenant
        self.keep, self.leave = renewal.keep, renewal.leave
        self._channel: str | None = None
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """In a child process: what there is, is the parent's."""
        self.kept: Lease | None = None
        """By which this process keeps blobs: nothing that refers to some is written without it."""

    def channel(self, connection: Connection) -> str:
        """On which this tenant's processes tell each other of news."""
        if self._channel is None:
            row = connection.execute("select channel from turnlog.tenant where num = %s", (self.tenant,)).fetchone()
            if row is None:
                raise NotFound(f"tenant {self.pool.tenant!r:.80} is gone", hint="it was dropped")
            self._channel = f"turnlog_{row[0].hex}"
        return self._channel

    def collections(self, connection: Connection) -> int:
        """How often blobs were collected: as long as it stays, so do they."""
        row = connection.execute("select collections from turnlog.tenant where num = %s", (self.tenant,)).fetchone()
        return row[0] if row is not None else 0

    def kept_in(self, connection: Connection) -> Lease | None:
        """Inside a transaction: what is kept stays until it ends, or this raises. None if nothing is kept."""
        lease = self.kept
        if lease is None or lease.is_held(connection):
            return lease
        # A crash of the server takes all leases away. That is fine as long as nobody collected anything.
        if lease.take(connection) is not None or self.collections(connection) != lease.collections:
            raise lost()
        return lease


def lost() -> Unavailable:
    """The lease that protected our blobs expired, and blobs were collected meanwhile."""
    return Unavailable(
        "this process did not answer while it kept blobs, and somebody collected blobs meanwhile",
        hint="do it again: what it refers to may be gone",
    )
