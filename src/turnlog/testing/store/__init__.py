"""The contract of a store, as tests that any store inherits."""

from __future__ import annotations

from turnlog.testing.store.appending import Appending
from turnlog.testing.store.blobs import Blobs
from turnlog.testing.store.copying import Copying
from turnlog.testing.store.erasing import Erasing
from turnlog.testing.store.following import Following
from turnlog.testing.store.reading import Reading
from turnlog.testing.store.removing import Removing
from turnlog.testing.store.sessions import Sessions
from turnlog.testing.store.tenants import Tenants


class StoreContract(Appending, Reading, Sessions, Removing, Copying, Erasing, Blobs, Following, Tenants):
    """The promises of `turnlog.store` and of its capabilities. Tests of a capability are skipped if the store lacks it.

    Inherit it in a class whose name begins with `Test`, and give `connect`. Not tested: what a store keeps beside the
    logs for programs (`KeepTables`, `KeepFiles`, `ReportHealth` beyond its fields), and crashes, which need the store's
    own means.
    """
