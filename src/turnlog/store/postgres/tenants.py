"""The tenants of a database: finding, listing and dropping them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from turnlog.store.postgres.pool import Connection, Pool, valid_tenant
from turnlog.store.postgres.schema import tenant_of
from turnlog.store.refusal import tenant_missing
from turnlog.store.tenant import DroppedTenant

_NUMBER_OF = "select num from turnlog.tenant where name = %s"
_PORTION = 5000
"""The number of rows that are deleted at once, so that the server answers in time."""


def number_of(pool: Pool, *, create: bool) -> int:
    """Return the number of this pool's tenant, which is created if necessary and `create`."""

    def job(connection: Connection, again: bool) -> int | None:
        del again
        if create:
            return tenant_of(connection, pool.tenant)
        row = connection.execute(_NUMBER_OF, (pool.tenant,)).fetchone()
        return None if row is None else row[0]

    number = pool.run(f"looking for tenant {pool.tenant!r:.80}", job)
    if number is None:
        raise tenant_missing(pool.tenant)
    return number


def names(pool: Pool) -> list[str]:
    """Return the names of all tenants."""
    return [name for (name,) in pool.rows("listing tenants", "select turnlog.tenants()")]


def drop(pool: Pool, name: str) -> DroppedTenant:
    """Hide a tenant, then delete its rows portion by portion. After an interruption, call this again."""
    doing = f"dropping tenant {name!r:.80}"
    hidden = pool.rows(doing, "select turnlog.give_up_tenant(%s)", (valid_tenant(name),))
    if not hidden:
        raise tenant_missing(name)
    dropped: Counter[str] = Counter()
    for (one,) in hidden:
        for what, number in _erased(Pool(pool.connections, one), doing):
            dropped[what] += number
    return DroppedTenant(
        name, dropped["live"], dropped["deleted"], dropped["entries"], dropped["blobs"], dropped["bytes"]
    )


def _erased(pool: Pool, doing: str) -> Iterator[tuple[str, int]]:
    query = "select what, number from turnlog.erase_tenant(%s)"
    while rows := pool.rows(doing, query, (_PORTION,)):
        yield from rows
