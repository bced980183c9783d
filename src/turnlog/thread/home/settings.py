"""The options of a home: how much of a workspace checkpoints cover, how long the trash keeps."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from msgspec import Struct

from turnlog.errors import Invalid


class Settings(Struct, frozen=True):
    """The options of a home."""

    checkpoints: bool = True
    """Whether every turn is bracketed by two checkpoints."""
    max_file_bytes: int = 256 << 20
    quota_bytes: int | None = None
    """How much the blobs of the home may take before a checkpoint that needs more is refused."""
    covers_ignored: bool = True
    """Whether small files that git would ignore are covered."""
    trash_for: timedelta | None = None
    """How long deleted sessions stay in the trash; None means for ever."""
    progress: Callable[[str, int], None] | None = None
    """Called during long work with files, with `scanning` or `restoring` and the number of files so far."""


def check_stay(stay: timedelta) -> None:
    """Refuse what is not the time that sessions stay somewhere."""
    if not isinstance(stay, timedelta) or stay < timedelta(0):  # pyright: ignore[reportUnnecessaryIsInstance]
        hint = "a timedelta, such as timedelta(days=90)"
        raise Invalid(f"{stay!r:.80} is not a duration", hint=hint)
