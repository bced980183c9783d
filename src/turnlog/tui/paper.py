"""How everything is painted: with the terminal's own colours. Where there are none, Textual leaves them out."""

from __future__ import annotations

from datetime import datetime

from turnlog.view.typeset import Screen


def _moment(at: datetime | None) -> str:
    return "" if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


PAPER = Screen(room=80, has_colour=True, moment=_moment, unfolding="Enter")
