"""Which modules are imported: for a hook those of its own installation, and for nobody what only older Pythons need.

Needs nothing that is not loaded anyway.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

_OLD = "typing_extensions"
"""msgspec asks for it on behalf of older Pythons, does without, and it takes as long to load as all of msgspec."""


@contextmanager
def without_old() -> Generator[None]:
    """Inside, nobody finds what only older Pythons need."""
    is_hidden = _OLD not in sys.modules
    if is_hidden:
        sys.modules[_OLD] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if is_hidden:
            del sys.modules[_OLD]


def use_own() -> None:
    """Leave out what lies in the current folder, and where `PYTHONPATH` says that modules are."""
    added = [os.getcwd() if _is_here() else "", *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    others = {os.path.abspath(path) for path in added if path}
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.modules.setdefault(_OLD, None)  # type: ignore[arg-type]
    sys.path[:] = [path for path in sys.path if path and (path == own or os.path.abspath(path) not in others)]


def _is_here() -> bool:
    """As `folder.is_here`, which this module must not load: it runs before anything of ours is imported."""
    try:
        os.getcwd()
    except OSError:
        return False
    return True
