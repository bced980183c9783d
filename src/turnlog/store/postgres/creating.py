"""Creating a log: a row for the session and rows for its first entries. A long log takes several statements."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from turnlog.log.entry import Start
from turnlog.log.part import Fork
from turnlog.store.postgres.names import alias_of, id_bytes, key_of
from turnlog.store.postgres.rows import Stamped

CREATE = """
with owner as (
    select num from turnlog.tenant where num = %(tenant)s and name = %(name)s for key share
), parent as (
    select root from turnlog.session
    where tenant = %(tenant)s and coalesce(first_key, key) = %(parent)b and (place = 'base' or key = %(parent_key)b)
        and last_seq >= %(fork_seq)s for key share
), made as (
    insert into turnlog.session (num, tenant, key, first_key, id, place, root, made, fork_of, fork_seq,
        first_seq, last_seq, last_ms, recent, last_fence, wide_seq, bytes, alias)
    select new.num, %(tenant)s, %(key)b, %(first_key)b, %(id)b, %(place)s, coalesce((select root from parent), new.num),
        %(made)s, %(fork_of)b, %(fork_seq)s, %(first_seq)s, %(last_seq)s, %(last_at)s, %(last_at)s / 60000,
        %(last_fence)s, %(wide_seq)s, %(bytes)s, %(alias)b
    from (select nextval('turnlog.number') as num) as new
    where exists (select from owner) and (%(parent)b::bytea is null or exists (select from parent))
    on conflict do nothing
    returning num, root, tenant
), lines as (
    insert into turnlog.entry (root, session, tenant, seq, key, line)
    select root, num, tenant, new.*
    from made, unnest(%(seqs)s::bigint[], %(keys)b::bytea[], %(lines)b::bytea[]) as new
)
select num, root from made
"""
MORE = """
insert into turnlog.entry (root, session, tenant, seq, key, line) select %(root)s, %(num)s, %(tenant)s, new.*
from unnest(%(seqs)s::bigint[], %(keys)b::bytea[], %(lines)b::bytea[]) as new
"""
_PORTION_BYTES = 4 << 20
"""The most bytes per statement, so that the server answers in time."""


def row_of(tenant: int, session_id: str, new: Stamped, parent: Fork | None) -> dict[str, Any]:
    """Return the values for `CREATE`, except for the place and the lines."""
    first = new.entries[0]
    fork = first.fork if isinstance(first, Start) else None
    return {
        "tenant": tenant,
        "parent": None if parent is None else key_of(parent.base),
        "parent_key": None if parent is None else key_of(parent.session),
        "key": key_of(session_id),
        "first_key": None if first.id == session_id else key_of(first.id),
        "id": id_bytes(session_id),
        "alias": alias_of(session_id),
        "made": uuid.uuid4(),
        "fork_of": None if fork is None else key_of(fork.base),
        "fork_seq": None if fork is None else fork.seq,
        "first_seq": new.seqs[0],
        "last_seq": new.seqs[-1],
        "last_at": new.last_at,
        "last_fence": new.last_fence,
        "wide_seq": new.wide_seq,
        "bytes": new.size,
    }


def portions(new: Stamped) -> Iterator[dict[str, Any]]:
    """Yield the lines in portions, one for each statement."""
    begin = size = 0
    for end, line in enumerate(new.lines, 1):
        size += len(line)
        if size > _PORTION_BYTES or end == len(new.lines):
            yield {"seqs": new.seqs[begin:end], "keys": new.keys[begin:end], "lines": new.lines[begin:end]}
            begin, size = end, 0
