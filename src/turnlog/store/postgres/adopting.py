"""Lines of another copy of a log, taken over as they are."""

from __future__ import annotations

import hashlib

import psycopg
from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import Conflict, Corrupt, NotFound
from turnlog.log.draft import to_ms
from turnlog.log.written import bare, entries_of, entry_of
from turnlog.store.postgres.lease import Lease, Leases
from turnlog.store.postgres.names import key_of
from turnlog.store.postgres.pool import Connection
from turnlog.store.postgres.rows import NO_FENCE, LogEnd, LogRows, Stamped, stamped
from turnlog.store.refusal import id_taken

_LINE = "select line from turnlog.entry where tenant = %s and root = %s and session = %s and seq = %s"
# A purged session was cut back, and may say that its head was moved behind its end.
_LIVE = """
update turnlog.session set place = 'live', last_fence = least(last_fence, last_seq) where tenant = %s and num = %s
"""
# One that stays out of sight: no one else writes to it.
_GROW = """
with moved as (
    update turnlog.session set last_seq = %(last_seq)s, last_ms = %(last_ms)s, recent = %(last_ms)s / 60000,
        last_fence = greatest(least(last_fence, last_seq), %(last_fence)s),
        wide_seq = coalesce(%(wide_seq)s, wide_seq), bytes = bytes + %(bytes)s
    where tenant = %(tenant)s and num = %(num)s returning num, root, tenant
)
insert into turnlog.entry (root, session, tenant, seq, key, line)
select root, num, tenant, new.* from moved, unnest(%(seqs)s::bigint[], %(keys)b::bytea[], %(lines)b::bytea[]) as new
"""


def stamped_from_lines(lines: list[bytes], *, after: int, at: int = 0) -> Stamped:
    """What a statement needs to bring bare lines into the table."""
    entries = [entry_of(item) for item in entries_of(lines, after=after)]
    lines = [bare(line) for line in lines]
    keys: dict[bytes, None] = {}
    for entry in entries:
        key = key_of(entry.id)
        keys[_repeated(key, entry.seq) if key in keys else key] = None
        at = at if entry.at is None else max(at, to_ms(entry.at))
    return stamped(entries, lines, list(keys), at)


def _repeated(key: bytes, seq: int) -> bytes:
    """The key of a line whose id is in the log before it: no id has one that long, and each is there once."""
    return b"#" * 33 + hashlib.sha256(b"%d %b" % (seq, key)).digest()


class Adoption(Struct, frozen=True):
    """Lines of another copy on their way into a log: see `Logs.adopt`."""

    rows: LogRows
    leases: Leases
    lines: list[bytes]
    after: int
    deleted: bool

    def run(self) -> None:
        """Append them, again if need be."""
        entries_of(self.lines, after=self.after)

        def job(connection: Connection, again: bool) -> None:
            with connection.transaction():
                self._append(connection, self.leases.kept_in(connection), again=again)

        self.rows.run(job)

    def _append(self, connection: Connection, lease: Lease | None, *, again: bool) -> None:
        rows = self.rows
        row = rows.lock(connection)
        if row is None:
            raise NotFound(f"session {rows.id} is gone from its place", hint="it was purged")
        state, last_seq, last_at, _ = row
        new = stamped_from_lines(self.lines, after=self.after, at=last_at)
        if again and last_seq == new.seqs[-1] and _ends_with(rows, connection, new):
            return  # it was us, and the answer was lost
        if last_seq != self.after:
            message = f"session {rows.id} ends with entry {last_seq}, not {self.after}"
            raise Conflict(message, hint="look again, and go on")
        new = _with_keys_of_their_own(rows, connection, new)
        if state == "deleted" or (state == "base" and self.deleted):
            _grow(rows, connection, new)
            return
        if state == "base":
            _make_live(rows, connection)
        if not rows.write(connection, new, LogEnd(last_seq, last_at), NO_FENCE, lease):
            raise Corrupt(f"session {rows.id} changed under a lock", hint="the tables are not as turnlog made them")


def _make_live(rows: LogRows, connection: Connection) -> None:
    try:
        connection.execute(_LIVE, (rows.tenant, rows.num))
    except psycopg.errors.UniqueViolation:
        raise id_taken(rows.id) from None


def _grow(rows: LogRows, connection: Connection, new: Stamped) -> None:
    values = {
        "tenant": rows.tenant, "num": rows.num, "last_seq": new.seqs[-1], "last_ms": new.last_at,
        "last_fence": new.last_fence, "wide_seq": new.wide_seq, "bytes": new.size, "seqs": new.seqs,
        "keys": new.keys, "lines": new.lines,
    }  # fmt: skip
    connection.execute(_GROW, values)


def _ends_with(rows: LogRows, connection: Connection, new: Stamped) -> bool:
    row = connection.execute(_LINE, (*rows.place, new.seqs[-1]), binary=True).fetchone()
    return row is not None and bytes(row[0]) == new.lines[-1]


def _with_keys_of_their_own(rows: LogRows, connection: Connection, new: Stamped) -> Stamped:
    """A file may repeat an entry; here an id is in the index once, for the first of its lines."""
    there = rows.present(connection, new.keys)
    if not there:
        return new
    pairs = zip(new.keys, new.seqs, strict=True)
    return replace(new, keys=[_repeated(key, seq) if key in there else key for key, seq in pairs])
