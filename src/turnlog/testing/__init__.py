"""Contract suites and builders for people who extend Turnlog. Needs pytest.

A store inherits every promise of `turnlog.store` with one method:

    from turnlog.testing import StoreContract

    class TestMyStore(StoreContract):
        def connect(self, folder, clock):
            return my_store.connect(str(folder), clock=clock)
"""

from __future__ import annotations

from turnlog.errors import Unsupported

try:
    import pytest as _pytest
except ModuleNotFoundError as error:
    raise Unsupported("turnlog.testing needs pytest", hint="pip install pytest") from error

_pytest.register_assert_rewrite(
    "turnlog.testing.appending", "turnlog.testing.blobs", "turnlog.testing.reading", "turnlog.testing.sessions"
)

from turnlog.testing.build import ManualClock, draft, entries_of, read, said  # noqa: E402
from turnlog.testing.contract import StoreContract  # noqa: E402

__all__ = ["ManualClock", "StoreContract", "draft", "entries_of", "read", "said"]
