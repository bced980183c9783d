"""Tenants: stores inside a store, and the report of a dropped tenant."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import Protocol, get_args, runtime_checkable

from msgspec import Struct

from turnlog.errors import TurnlogError, Unsupported
from turnlog.store import Listed, Place, Store
from turnlog.store.capability import MeasureDisk, ability


class DroppedTenant(Struct, frozen=True):
    """What was removed with a tenant. After an interrupted drop, only what was still left."""

    name: str
    sessions: int
    deleted: int
    """The number of sessions in the trash."""
    entries: int
    blobs: int
    size_bytes: int
    """The stored size of logs and blobs."""


@runtime_checkable
class HoldTenants(Protocol):
    """A store that holds isolated stores for tenants."""

    def tenant(self, name: str, *, create: bool = True) -> Store:
        """Return a tenant's store, which is closed with this one. Without `create`, a missing one raises `NotFound`."""
        ...

    def tenant_location(self, name: str) -> str:
        """Return the location of a tenant's store."""
        ...

    def tenants(self) -> list[str]:
        """Return the names of all tenants, sorted."""
        ...

    def drop_tenant(self, name: str) -> DroppedTenant:
        """Remove a tenant with everything in it. Raises `NotFound`.

        Every process that has it open loses access at once, and no later write is acknowledged.
        """
        ...


def refuse_guest(tenant: str) -> None:
    """Raise `Unsupported` for a tenant: it has no tenants of its own, and no access to others."""
    if tenant:
        raise Unsupported(
            f"this is the home of tenant {tenant!r:.80}, which has no tenants of its own",
            hint="ask the home that it is in",
        )


def count_contents(name: str, store: Store) -> DroppedTenant:
    """Count what a tenant holds. What cannot be read counts as nothing: it is dropped as well."""
    entries = 0
    listings: dict[str, list[Listed]] = {place: [] for place in get_args(Place)}
    for place in get_args(Place):
        with suppress(TurnlogError):
            listings[place] += store.listing(place)
    for row in (row for rows in listings.values() for row in rows):
        with suppress(TurnlogError), closing(store.open(row.id, read_only=True, first=row.first)) as log:
            entries += sum(1 for _ in log.lines())
    blobs = size = 0
    if (measured := ability(store, MeasureDisk)) is not None:
        with suppress(TurnlogError):
            blobs, size = measured.unneeded(()).blobs, sum(measured.disk().values())
    return DroppedTenant(name, len(listings["live"]), len(listings["deleted"]), entries, blobs, size)


def tenants_of(store: Store) -> HoldTenants:
    """Return the store as one that has tenants. Raises `Unsupported`."""
    keeper = ability(store, HoldTenants)
    if keeper is None:
        raise Unsupported("this store has no tenants", hint="a folder, `memory:` and PostgreSQL have")
    return keeper
