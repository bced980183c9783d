"""Contract suites and builders for people who extend Turnlog. Needs pytest.

A store is tested against the contract of `turnlog.store` with one method:

    from turnlog.testing.store import StoreContract

    class TestMyStore(StoreContract):
        def connect(self, folder, clock):
            return my_store.connect(str(folder), clock=clock)

A format inherits every promise of `turnlog.formats` with its name, its value and some files:

    from turnlog.testing.format import FormatContract

    class TestMyAgent(FormatContract):
        name = "my-agent"
        format = my_agent.FORMAT
        samples = [Path("tests/my-agent/session.jsonl")]

A dialect inherits every promise of `turnlog.wire` with its name, a response, and the same one streamed:

    from turnlog.testing.dialect import DialectContract

    class TestMyProvider(DialectContract):
        name = "my-provider"
        dialect = my_provider
        response, events = ...
"""

from __future__ import annotations

from turnlog.errors import Unsupported

try:
    import pytest as _pytest
except ModuleNotFoundError as error:
    raise Unsupported("turnlog.testing needs pytest", hint="pip install pytest") from error

_pytest.register_assert_rewrite("turnlog.testing.dialect", "turnlog.testing.format", "turnlog.testing.store")

from turnlog.testing.build import (  # noqa: E402
    ManualClock,
    draft,
    message_draft,
    readable_entries,
    undamaged_entries,
)
from turnlog.testing.dialect import DialectContract  # noqa: E402
from turnlog.testing.format import FormatContract  # noqa: E402
from turnlog.testing.store import StoreContract  # noqa: E402

__all__ = [
    "DialectContract",
    "FormatContract",
    "ManualClock",
    "StoreContract",
    "draft",
    "message_draft",
    "readable_entries",
    "undamaged_entries",
]
