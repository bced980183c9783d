"""How everything is painted: with the terminal's own colours. Where there are none, Textual leaves them out."""

from __future__ import annotations

import re
from datetime import datetime

from turnlog.view.typeset import Screen
from turnlog.view.visible import beginning, characters, width

_CODE = re.compile(r"(\x1b\[[0-9;]*m)")
_PLAIN = "\x1b[0m"


def _moment(at: datetime | None) -> str:
    return "" if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


PAPER = Screen(room=80, has_colour=True, moment=_moment, unfolding="Enter")


def bare(line: str) -> str:
    """A painted line without its colours."""
    return _CODE.sub("", line)


def parted(line: str, room: int) -> list[str]:
    """A painted line as as many as it needs, each as far in as it begins, all in its colours."""
    text = bare(line)
    if width(text) <= room:
        return [line]
    margin = " " * min(len(text) - len(text.lstrip(" ")), room // 2)
    made: list[str] = []
    now, left, code = "", room, ""
    for part in _CODE.split(line):
        if _CODE.fullmatch(part):
            now, code = now + part, part.replace(_PLAIN, "")
            continue
        while part:
            if not (piece := beginning(part, left)) and left >= room - len(margin):
                piece = next(iter(characters(part)))  # wider than all there is
            if piece:
                now, left, part = now + piece, left - width(piece), part[len(piece) :]
            else:
                made.append(now + (_PLAIN if code else ""))
                now, left = margin + code, room - len(margin)
    return [*made, now]
