"""Limits on imports: a hook imports only from its own installation, and nothing imports `typing_extensions`.

This module imports nothing that is not loaded anyway.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

_TYPING_EXTENSIONS = "typing_extensions"
"""msgspec imports it for older Pythons and works without it. It takes as long to load as all of msgspec."""


@contextmanager
def without_typing_extensions() -> Generator[None]:
    """Hide `typing_extensions` inside this context."""
    is_hidden = _TYPING_EXTENSIONS not in sys.modules
    if is_hidden:
        sys.modules[_TYPING_EXTENSIONS] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if is_hidden:
            del sys.modules[_TYPING_EXTENSIONS]


def restrict_imports() -> None:
    """Import nothing from the current folder, or from the folders in `PYTHONPATH`."""
    added = [os.getcwd() if _is_here() else "", *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    others = {os.path.abspath(path) for path in added if path}
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.modules.setdefault(_TYPING_EXTENSIONS, None)  # type: ignore[arg-type]
    sys.path[:] = [path for path in sys.path if path and (path == own or os.path.abspath(path) not in others)]


def _is_here() -> bool:
    """As `folder.is_here`, which this module must not load: it runs before anything of ours is imported."""
    try:
        os.getcwd()
    except OSError:
        return False
    return True
