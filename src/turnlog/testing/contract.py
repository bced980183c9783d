"""The contract of a store, as tests that any store inherits."""

from __future__ import annotations

from turnlog.testing.appending import Appending
from turnlog.testing.blobs import Blobs
from turnlog.testing.copying import Copying
from turnlog.testing.erasing import Erasing
from turnlog.testing.reading import Reading
from turnlog.testing.removing import Removing
from turnlog.testing.sessions import Sessions


class StoreContract(Appending, Reading, Sessions, Removing, Copying, Erasing, Blobs):
    """Every promise of `turnlog.store`. Inherit it in a class whose name begins with `Test`, and give `connect`."""
