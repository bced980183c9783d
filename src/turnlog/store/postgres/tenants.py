"""The tenants of a database, for who serves them all: found, counted off, dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from turnlog.store.postgres.pool import Connection, Pool, checked
from turnlog.store.postgres.schema import tenant_of
from turnlog.store.refusal import tenant_missing
from turnlog.store.tenant import DroppedTenant

_THERE = "select num from turnlog.tenant where name = %s"
_PORTION = 5000
"""So many rows go at once: the server has to answer in time."""


def number_of(pool: Pool, *, create: bool) -> int:
    """The number of the tenant that this pool is for; a new one if need be and told so."""

    def job(connection: Connection, again: bool) -> int | None:
        del again
        if create:
            return tenant_of(connection, pool.tenant)
        row = connection.execute(_THERE, (pool.tenant,)).fetchone()
        return None if row is None else row[0]

    number = pool.run(f"looking for tenant {pool.tenant!r:.80}", job)
    if number is None:
        raise tenant_missing(pool.tenant)
    return number


def names(pool: Pool) -> list[str]:
    """All of them."""
    return [name for (name,) in pool.rows("listing tenants", "select turnlog.tenants()")]


def drop(pool: Pool, name: str) -> DroppedTenant:
    """Give a tenant up, then erase it portion by portion. Who was interrupted goes on by doing it again."""
    doing = f"dropping tenant {name!r:.80}"
    hidden = pool.rows(doing, "select turnlog.give_up_tenant(%s)", (checked(name),))
    if not hidden:
        raise tenant_missing(name)
    went: Counter[str] = Counter()
    for (one,) in hidden:
        for what, number in _erased(Pool(pool.connections, one), doing):
            went[what] += number
    return DroppedTenant(name, went["live"], went["deleted"], went["entries"], went["blobs"], went["bytes"])


def _erased(pool: Pool, doing: str) -> Iterator[tuple[str, int]]:
    query = "select what, number from turnlog.erase_tenant(%s)"
    while rows := pool.rows(doing, query, (_PORTION,)):
        yield from rows
