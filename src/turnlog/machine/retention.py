"""How long a home keeps what is in its trash, if that was set; and durations as users write them."""

from __future__ import annotations

import os
from datetime import timedelta

from turnlog.errors import Invalid
from turnlog.layout import TRASH_LIMIT
from turnlog.machine.replace import read_bytes, replace_file

_NEVER = "never"
_DAYS_PER_UNIT = {"h": 1 / 24, "d": 1, "w": 7, "y": 365}


def duration_of(text: str) -> timedelta:
    """`90d`, `12w`, `36h`, `2y`, or a number of days. Raises `Invalid`."""
    number, unit = (text[:-1], text[-1:].lower()) if text[-1:].lower() in _DAYS_PER_UNIT else (text, "d")
    if not number.strip().isdecimal() or len(number) > 6:
        raise Invalid(f"{text!r:.80} is not how long", hint="90d, 12w, 36h, 2y, or a number of days")
    return timedelta(days=int(number) * _DAYS_PER_UNIT[unit])


def trash_for(folder: str) -> timedelta | None:
    """How long deleted sessions stay in the trash of the home in that folder; None if that was not set."""
    text = (read_bytes(os.path.join(folder, TRASH_LIMIT)) or b"").decode(errors="replace").strip()
    return duration_of(text) if text else None


def trash_time(text: str) -> str:
    """The text itself, if it says how long the trash keeps something: a duration, or `never`. Raises `Invalid`."""
    if text != _NEVER:
        duration_of(text)
    return text


def set_trash_for(folder: str, text: str) -> None:
    """Store how long the trash keeps something; `never` means until somebody purges it."""
    path = os.path.join(folder, TRASH_LIMIT)
    kept = b"" if trash_time(text) == _NEVER else f"{text}\n".encode()
    replace_file(path, read_bytes(path), kept)
