"""Stores inside a store, one for each tenant: what such a store offers, and what goes when one is dropped."""

from __future__ import annotations

from typing import Protocol, get_args, runtime_checkable

from msgspec import Struct

from turnlog.errors import Unsupported
from turnlog.store import Place, Store
from turnlog.store.capability import MeasureDisk, ability


class DroppedTenant(Struct, frozen=True):
    """What went with a tenant. Of one that was interrupted, what was left."""

    name: str
    sessions: int
    deleted: int
    """Sessions that were in the trash."""
    entries: int
    blobs: int
    size_bytes: int
    """Of logs and blobs, as they were kept."""


@runtime_checkable
class HoldTenants(Protocol):
    """A store that has room for others, each of which knows nothing of the rest."""

    def tenant(self, name: str, *, create: bool = True) -> Store:
        """The store of one. Raises `NotFound` where there is none and it is not to be made; closed with this one."""
        ...

    def tenant_location(self, name: str) -> str:
        """Where that is."""
        ...

    def tenants(self) -> list[str]:
        """The names of all there are, in order."""
        ...

    def drop_tenant(self, name: str) -> DroppedTenant:
        """Erase one with all that it has. Raises `NotFound`.

        Whoever has it open loses it at once, and nothing that is written then is acknowledged and lost.
        """
        ...


def refuse_guest(tenant: str) -> None:
    """A tenant has no tenants, and reaches no other."""
    if tenant:
        raise Unsupported(
            f"this is the home of tenant {tenant!r:.80}, which has no tenants of its own",
            hint="ask the home that it is in",
        )


def counted(name: str, store: Store) -> DroppedTenant:
    """What goes with a tenant."""
    entries = 0
    listings = {place: list(store.listing(place)) for place in get_args(Place)}
    for row in (row for rows in listings.values() for row in rows):
        log = store.open(row.id, read_only=True, first=row.first)
        entries += sum(1 for _ in log.lines())
        log.close()
    measured = ability(store, MeasureDisk)
    blobs, size = (measured.unneeded(())["blobs"], sum(measured.disk().values())) if measured is not None else (0, 0)
    return DroppedTenant(name, len(listings["live"]), len(listings["deleted"]), entries, blobs, size)


def tenants_of(store: Store) -> HoldTenants:
    """The store as one that has tenants. Raises `Unsupported`."""
    keeper = ability(store, HoldTenants)
    if keeper is None:
        raise Unsupported("this store has no tenants", hint="a folder, `memory:` and PostgreSQL have")
    return keeper
