"""A clock for tests in which the order of several sessions matters: those of one millisecond have none."""

from __future__ import annotations

import time

_last = 0


def tick() -> int:
    """Milliseconds since 1970, never the same twice: a little ahead where it is asked often."""
    global _last
    _last = max(_last + 1, time.time_ns() // 1_000_000)
    return _last
