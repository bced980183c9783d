"""Erasing in tables: lines, the record of the erasure, and the catalog's copy, in one transaction."""

from __future__ import annotations

from typing import Any, LiteralString

import msgspec

from turnlog.log.codec import Flawed, Unreadable, decode
from turnlog.log.erasure.content import ErasedLog, ErasingPlan, Erasure
from turnlog.log.erasure.line import Eraser
from turnlog.log.ids import word
from turnlog.store import IMPORTED
from turnlog.store.postgres.names import id_bytes, id_text, key_of, part_key
from turnlog.store.postgres.pool import Connection, Pool

_DOING = "erasing"
# Always locked from a fork to its parent, as a purge does.
_LOGS: LiteralString = (
    "select num, root, coalesce(first_key, key) from turnlog.session "
    "where tenant = %s and coalesce(first_key, key) = any(%b::bytea[]) order by num desc for no key update"
)
# A line that repeats an entry has another key.
_LINES: LiteralString = (
    "select seq, line from turnlog.entry where tenant = %s and root = %s and session = %s "
    "and (key = any(%b::bytea[]) or seq = any(%s::bigint[]) or position('\"again\":'::bytea in line) > 0)"
)
_FORKS: LiteralString = """
with recursive family as (
    select num, coalesce(first_key, key) as first from turnlog.session where tenant = %(tenant)s and num = any(%(nums)s)
    union
    select s.num, coalesce(s.first_key, s.key) from turnlog.session as s join family as f on s.fork_of = f.first
    where s.tenant = %(tenant)s
)
select turnlog.own_forget(num) from family
"""
_REMEMBER = """
insert into turnlog.erasure (tenant, first_key, first, seq, part, told) values (%s, %b, %b, %s, %s, %b)
on conflict do nothing
"""
_KNOWN: LiteralString = "select first, told from turnlog.erasure where tenant = %s"
_encode = msgspec.json.Encoder().encode
_decode_plan = msgspec.json.Decoder(ErasingPlan).decode
_decode_one = msgspec.json.Decoder(Erasure).decode


class PostgresErasing:
    """See `EraseEntries`."""

    def __init__(self, pool: Pool, tenant: int) -> None:
        self._pool = pool
        self._tenant = tenant

    def erase(self, plan: ErasingPlan) -> str:
        name = word(16)

        def job(connection: Connection, again: bool) -> None:
            del again  # all of it can be done twice
            with connection.transaction():
                self._erase(connection, plan)
                connection.execute(
                    "insert into turnlog.erasing (tenant, name, plan) values (%s, %s, %b) on conflict do nothing",
                    (self._tenant, name, _encode(plan)),
                )

        self._pool.run(_DOING, job)
        return name

    def erasures(self, first: str | None = None) -> dict[str, list[Erasure]]:
        values: tuple[Any, ...] = (self._tenant,) if first is None else (self._tenant, key_of(first))
        query = (_KNOWN if first is None else _KNOWN + " and first_key = %b") + " order by seq, part"
        erasures: dict[str, list[Erasure]] = {}
        for name, record in self._pool.rows(_DOING, query, values):
            erasures.setdefault(id_text(bytes(name)), []).append(_decode_one(bytes(record)))
        return erasures

    def unsettled(self) -> dict[str, ErasingPlan]:
        rows = self._pool.rows(_DOING, "select name, plan from turnlog.erasing where tenant = %s", (self._tenant,))
        return {name: _decode_plan(bytes(plan)) for name, plan in rows}

    def settle(self, name: str) -> None:
        self._pool.rows(_DOING, "select turnlog.drop_erasing(%s)", (name,))

    # ── inside a transaction ──────────────────────────────────────────────────────────────────────

    def _erase(self, connection: Connection, plan: ErasingPlan) -> None:
        logs = {key_of(log.first): log for log in plan.logs}
        rows = connection.execute(_LOGS, (self._tenant, list(logs)), binary=True).fetchall()
        for num, root, first in rows:
            self._erase_in(connection, num, root, logs[bytes(first)])
        nums = [row[0] for row in rows]
        connection.execute(
            "update turnlog.session set erased = erased + 1 where tenant = %s and num = any(%s)", (self._tenant, nums)
        )
        connection.execute(_FORKS, {"tenant": self._tenant, "nums": nums})
        connection.execute("insert into turnlog.own_meta (key, value) values ('unsettled', 1) on conflict do nothing")
        connection.execute("select turnlog.drop_derived(%s)", (IMPORTED,))
        for key, log in logs.items():
            for one in log.erasures:
                values = (self._tenant, key, id_bytes(log.first), one.seq, part_key(one.part), _encode(one))
                connection.execute(_REMEMBER, values)

    def _erase_in(self, connection: Connection, num: int, root: int, log: ErasedLog) -> None:
        eraser = Eraser(log.erasures)
        keys, seqs = [key_of(one.id) for one in log.erasures], [one.seq for one in log.erasures]
        for seq, held in connection.execute(_LINES, (self._tenant, root, num, keys, seqs), binary=True).fetchall():
            line = bytes(held)
            try:
                item = decode(line)
            except Unreadable:
                continue
            entry = item.entry if isinstance(item, Flawed) else item
            left = eraser.erased(line, entry)
            if left != line:
                connection.execute("select turnlog.erase_line(%s, %s, %s, %b)", (root, num, seq, left))
