"""How long a home keeps what is in its trash, where somebody said so; and how people say how long."""

from __future__ import annotations

import os
from datetime import timedelta

from turnlog.errors import Invalid
from turnlog.machine.replace import read_bytes, replace_file

_FILE = "trash-for"
_DAYS = {"h": 1 / 24, "d": 1, "w": 7, "y": 365}


def duration_of(text: str) -> timedelta:
    """`90d`, `12w`, `36h`, `2y`, or a number of days. Raises `Invalid`."""
    number, unit = (text[:-1], text[-1:].lower()) if text[-1:].lower() in _DAYS else (text, "d")
    if not number.strip().isdecimal() or len(number) > 6:
        raise Invalid(f"{text!r:.80} is not how long", hint="90d, 12w, 36h, 2y, or a number of days")
    return timedelta(days=int(number) * _DAYS[unit])


def trash_for(folder: str) -> timedelta | None:
    """How long what is deleted stays in the trash of the home in that folder; None where nobody said."""
    text = (read_bytes(os.path.join(folder, _FILE)) or b"").decode(errors="replace").strip()
    return duration_of(text) if text else None


def set_trash_for(folder: str, text: str) -> None:
    """From now on so long; `never` for until somebody purges it."""
    path = os.path.join(folder, _FILE)
    if text != "never":
        duration_of(text)
    replace_file(path, read_bytes(path), b"" if text == "never" else f"{text}\n".encode())
