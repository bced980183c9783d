"""Appending the lines of another copy of a log, unchanged."""

from __future__ import annotations

import hashlib

import psycopg
from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import Corrupt
from turnlog.log.draft import to_ms
from turnlog.log.written import bare, entries_of, entry_of
from turnlog.store.postgres.lease import Lease, Leases
from turnlog.store.postgres.names import key_of
from turnlog.store.postgres.pool import Connection
from turnlog.store.postgres.rows import NO_FENCE, LogEnd, LogRows, Stamped, stamped
from turnlog.store.refusal import ends_elsewhere, id_taken, session_gone

_LINE = "select line from turnlog.entry where tenant = %s and root = %s and session = %s and seq = %s"
# A purge shortens the log that it keeps aside, but leaves `last_fence`, which may be after the new end.
_MAKE_LIVE = """
update turnlog.session set place = 'live', last_fence = least(last_fence, last_seq) where tenant = %s and num = %s
"""
# For a log that stays deleted or aside: nothing else writes to it.
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
    """Return what a statement needs to insert bare lines."""
    entries = [entry_of(item) for item in entries_of(lines, after=after)]
    lines = [bare(line) for line in lines]
    keys: dict[bytes, None] = {}
    for entry in entries:
        key = key_of(entry.id)
        keys[_repeated(key, entry.seq) if key in keys else key] = None
        at = at if entry.at is None else max(at, to_ms(entry.at))
    return stamped(entries, lines, list(keys), at)


def _repeated(key: bytes, seq: int) -> bytes:
    """Return the key of a line that repeats an id. No id has a key that long, and `seq` makes it unique."""
    return b"#" * 33 + hashlib.sha256(b"%d %b" % (seq, key)).digest()


class Adoption(Struct, frozen=True):
    """Lines of another copy that are appended to a log: see `Logs.adopt`."""

    rows: LogRows
    leases: Leases
    lines: list[bytes]
    after: int
    deleted: bool

    def run(self) -> None:
        """Append the lines, with retries."""
        entries_of(self.lines, after=self.after)

        def job(connection: Connection, again: bool) -> None:
            with connection.transaction():
                self._append(connection, self.leases.kept_in(connection), again=again)

        self.rows.run(job)

    def _append(self, connection: Connection, lease: Lease | None, *, again: bool) -> None:
        rows = self.rows
        log = rows.lock(connection)
        if log is None:
            raise session_gone(rows.id)
        new = stamped_from_lines(self.lines, after=self.after, at=log.last_ms)
        if again and log.last_seq == new.seqs[-1] and _ends_with(rows, connection, new):
            return  # our first attempt succeeded, and the answer was lost
        if log.last_seq != self.after:
            raise ends_elsewhere(rows.id, log.last_seq, self.after)
        new = _with_unique_keys(rows, connection, new)
        if log.place == "deleted" or (log.place == "base" and self.deleted):
            _grow(rows, connection, new)
            return
        if log.place == "base":
            _make_live(rows, connection)
        if not rows.write(connection, new, LogEnd(log.last_seq, log.last_ms), NO_FENCE, lease):
            raise Corrupt(f"session {rows.id} changed under a lock", hint="the tables are not as turnlog made them")


def _make_live(rows: LogRows, connection: Connection) -> None:
    try:
        connection.execute(_MAKE_LIVE, (rows.tenant, rows.num))
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
    row = connection.execute(_LINE, (*rows.key_columns, new.seqs[-1]), binary=True).fetchone()
    return row is not None and bytes(row[0]) == new.lines[-1]


def _with_unique_keys(rows: LogRows, connection: Connection, new: Stamped) -> Stamped:
    """Replace the keys of repeated ids: a file may repeat an entry, but the index has each id only once."""
    existing = rows.present(connection, new.keys)
    if not existing:
        return new
    pairs = zip(new.keys, new.seqs, strict=True)
    return replace(new, keys=[_repeated(key, seq) if key in existing else key for key, seq in pairs])
