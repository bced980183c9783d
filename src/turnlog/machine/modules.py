"""Limits on imports: a hook imports only from its own installation, and nothing waits for what msgspec can do without.

This module imports nothing that is not loaded anyway.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TYPING_EXTENSIONS = "typing_extensions"
"""msgspec imports it for older Pythons and works without it. It takes as long to load as all of msgspec."""
_DEFERRED = ("platform", "textwrap")
"""What msgspec imports, and rarely uses: of `platform` only the name of the system. They take three milliseconds."""
_KNOWN: dict[tuple[str, str], Callable[[], str]] = {("platform", "system"): lambda: os.uname().sysname}
"""What they are asked as they are imported, by msgspec and zstandard."""
if sys.implementation.name == "cpython":
    _KNOWN["platform", "python_implementation"] = lambda: "CPython"


class _Deferred(ModuleType):
    """Stands for a module until something is asked of it."""

    def __getattr__(self, name: str) -> Any:
        module = self.__name__
        if (module, name) in _KNOWN:
            return _KNOWN[module, name]
        if sys.modules.get(module) is self:
            del sys.modules[module]
        return getattr(import_module(module), name)


@contextmanager
def quick_imports() -> Generator[None]:
    """Inside this context, msgspec loads none of these modules."""
    hidden = _hide()
    try:
        yield
    finally:
        for name in hidden:
            if sys.modules.get(name) is None or isinstance(sys.modules[name], _Deferred):
                sys.modules.pop(name, None)


def _hide() -> list[str]:
    """Hide those that are not loaded yet. Returns their names."""
    hidden = [name for name in (_TYPING_EXTENSIONS, *_DEFERRED) if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = _Deferred(name) if name in _DEFERRED else None  # type: ignore[assignment]
    return hidden


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
