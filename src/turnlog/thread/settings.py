"""The options of a home: how much of a workspace checkpoints cover, how long the trash keeps."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from msgspec import Struct


class Settings(Struct, frozen=True):
    """How much of a workspace checkpoints cover."""

    checkpoints: bool = True
    """Whether every turn is bracketed by two of them."""
    max_file_bytes: int = 256 << 20
    quota_bytes: int | None = None
    """How much the blobs of the home may take before a checkpoint that needs more is refused."""
    covers_ignored: bool = True
    """Whether small files that git would ignore are covered."""
    trash_for: timedelta | None = None
    """How long what was deleted stays in the trash; for ever, if nobody says."""
    progress: Callable[[str, int], None] | None = None
    """Told what long work with files is doing, `scanning` or `restoring`, and how many it has done."""
