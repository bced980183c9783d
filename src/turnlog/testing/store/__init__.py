"""The contract of a store, as tests that any store inherits."""

from __future__ import annotations

from turnlog.testing.store.appending import Appending
from turnlog.testing.store.blobs import Blobs
from turnlog.testing.store.copying import Copying
from turnlog.testing.store.erasing import Erasing
from turnlog.testing.store.reading import Reading
from turnlog.testing.store.removing import Removing
from turnlog.testing.store.sessions import Sessions


class StoreContract(Appending, Reading, Sessions, Removing, Copying, Erasing, Blobs):
    """Every promise of `turnlog.store`. Inherit it in a class whose name begins with `Test`, and give `connect`."""
