"""What a store promises of its tenants, where it can hold any: each has a store of its own."""

from __future__ import annotations

import pytest

from turnlog.errors import NotFound, Unsupported
from turnlog.log.payload import digest
from turnlog.store import Store, derived
from turnlog.store.capability import ability
from turnlog.store.tenant import HoldTenants
from turnlog.testing.build import message_draft, note, start, undamaged_entries
from turnlog.testing.store.fixture import StoreTests


class Tenants(StoreTests):
    """Tenants, for stores that hold them."""

    @pytest.fixture
    def host(self, store: Store) -> HoldTenants:
        """The store as one with tenants."""
        host = ability(store, HoldTenants)
        if host is None:
            pytest.skip("this store has no tenants")
        try:
            assert host.tenants() == []
        except Unsupported:
            pytest.skip("this store is that of a tenant")
        return host

    def test_what_a_tenant_has_nobody_else_has(self, host: HoldTenants, store: Store) -> None:
        acme, other = host.tenant("acme"), host.tenant("other")
        for tenant in (acme, store):
            tenant.create("s", [start("s"), note()]).close()
        derived.put(acme, {digest(b"blob"): b"blob"})
        acme.open("s").append([message_draft("theirs")], after=2, head=0)
        assert [len(undamaged_entries(one.open("s"))) for one in (acme, store)] == [3, 2]
        assert list(derived.ids(other)) == []
        assert [one.has(digest(b"blob")) for one in (acme, store, other)] == [True, False, False]
        assert host.tenants() == ["acme", "other"]

    def test_only_a_tenant_that_is_there_is_opened_unless_it_may_be_made(self, host: HoldTenants) -> None:
        with pytest.raises(NotFound):
            host.tenant("acme", create=False)
        with pytest.raises(NotFound):
            host.drop_tenant("acme")
        assert host.tenants() == []
        host.tenant("acme").create("s", [start("s")]).close()
        assert list(derived.ids(host.tenant("acme", create=False))) == ["s"]

    def test_a_dropped_tenant_is_gone_and_what_it_had_was_counted(self, host: HoldTenants, store: Store) -> None:
        store.create("mine", [start("mine")]).close()
        acme = host.tenant("acme")
        log = acme.create("s", [start("s"), note()])
        acme.create("old", [start("old")]).close()
        acme.delete("old")
        derived.put(acme, {digest(b"blob"): b"blob"})
        dropped = host.drop_tenant("acme")
        assert (dropped.name, dropped.sessions, dropped.deleted, dropped.entries) == ("acme", 1, 1, 3)
        assert dropped.blobs == 1
        assert host.tenants() == []
        with pytest.raises(NotFound):
            log.append([note()], after=0, head=0)
        with pytest.raises(NotFound):
            acme.create("new", [start("new")])
        assert list(derived.ids(host.tenant("acme"))) == []
        assert list(derived.ids(store)) == ["mine"]

    def test_a_tenant_has_no_tenants(self, host: HoldTenants) -> None:
        acme = ability(host.tenant("acme"), HoldTenants)
        if acme is not None:
            for ask in (acme.tenants, lambda: acme.tenant("inner")):
                with pytest.raises(Unsupported):
                    ask()
