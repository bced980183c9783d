"""A pytest plugin: Strands' own tests get our repository where they ask for their mocked one."""

import sys
from types import ModuleType
from typing import Any

from turnlog.adapters.strands import TurnlogSessionRepository

# Their conftest imports it for tests of S3, which are not run here.
sys.modules.setdefault("moto", ModuleType("moto"))


class Swapped(TurnlogSessionRepository):
    """In memory, as theirs is."""

    def __init__(self) -> None:
        super().__init__("memory:")


def pytest_collection_modifyitems(items: Any) -> None:
    for module in {item.module for item in items}:
        if hasattr(module, "MockedSessionRepository"):
            module.MockedSessionRepository = Swapped
