"""Which modules a hook imports: those of its own installation, and nothing that another program put in the way.

Needs nothing that is not loaded anyway.
"""

from __future__ import annotations

import os
import sys


def use_own() -> None:
    """Leave out what lies in the current folder, and where `PYTHONPATH` says that modules are."""
    told = [os.getcwd() if _is_here() else "", *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    others = {os.path.abspath(place) for place in told if place}
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    # msgspec asks for it on behalf of older Pythons, and it takes as long to load as all of msgspec.
    sys.modules.setdefault("typing_extensions", None)  # type: ignore[arg-type]
    sys.path[:] = [place for place in sys.path if place and (place == own or os.path.abspath(place) not in others)]


def _is_here() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True
