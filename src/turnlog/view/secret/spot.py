"""Where a secret is."""

from __future__ import annotations

from typing import NamedTuple


class Spot(NamedTuple):
    """Where a secret is in a text, and of which kind it is."""

    start: int
    end: int
    kind: str
