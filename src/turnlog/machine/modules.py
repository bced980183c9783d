"""Limits on imports: a hook imports only from its own installation, and nothing waits for what msgspec can do without.

This module imports nothing that is not loaded anyway.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TYPING_EXTENSIONS = "typing_extensions"
"""msgspec imports it for older Pythons and works without it. It takes as long to load as all of msgspec."""
_PLATFORM = "platform"
"""`uuid`, which msgspec imports, asks it for the name of the system. It takes two milliseconds to load."""


class _Platform(ModuleType):
    """Knows the name of the system, and loads the real module for anything else."""

    def system(self) -> str:
        """See `platform.system`."""
        return os.uname().sysname

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(_PLATFORM) is self:
            del sys.modules[_PLATFORM]
        import platform

        return getattr(platform, name)


@contextmanager
def quick_imports() -> Generator[None]:
    """Inside this context, msgspec loads none of these two modules."""
    hidden = _hide()
    try:
        yield
    finally:
        for name in hidden:
            if sys.modules.get(name) is None or isinstance(sys.modules[name], _Platform):
                sys.modules.pop(name, None)


def _hide() -> list[str]:
    """Hide those that are not loaded yet. Returns their names."""
    names = [name for name in (_TYPING_EXTENSIONS, _PLATFORM) if name not in sys.modules]
    for name in names:
        sys.modules[name] = _Platform(name) if name == _PLATFORM else None  # type: ignore[assignment]
    return names


def restrict_imports() -> None:
    """Import nothing from the current folder, or from the folders in `PYTHONPATH`."""
    added = [os.getcwd() if _is_here() else "", *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    others = {os.path.abspath(path) for path in added if path}
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    _hide()
    sys.path[:] = [path for path in sys.path if path and (path == own or os.path.abspath(path) not in others)]


def _is_here() -> bool:
    """As `folder.is_here`, which this module must not load: it runs before anything of ours is imported."""
    try:
        os.getcwd()
    except OSError:
        return False
    return True
