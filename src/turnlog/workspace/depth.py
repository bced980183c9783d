"""How deep folders can be scanned on what the callers leave of the stack."""

from __future__ import annotations

import sys
from types import FrameType

_FRAMES_LEFT = 80
"""The stack frames that are left for what is done with one file."""


def depth_that_fits(frames: int) -> int:
    """How many levels fit, each of which takes that many stack frames."""
    used = 0
    frame: FrameType | None = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        used, frame = used + 1, frame.f_back
    return max(0, (sys.getrecursionlimit() - used - _FRAMES_LEFT) // frames)
