"""Interruptions that no hook reports, as the agent's own file of the session records them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnlog.hooks import HookedAgent

_TAIL_BYTES = 1 << 20


def was_interrupted(agent: HookedAgent, turn: str, path: str) -> bool:
    """Whether a file says, at its end, that this turn was interrupted. The caller knows that it is the agent's own."""
    if agent.says_interrupted is None:
        return False
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - _TAIL_BYTES))
            return agent.says_interrupted(file.read(_TAIL_BYTES), turn)
    except OSError:
        return False  # there is no file yet
