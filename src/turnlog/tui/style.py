"""How lines are painted: with the terminal's own colours. Where there are none, Textual leaves them out."""

from __future__ import annotations

import re

from turnlog.view.terminal.typeset import LineStyle
from turnlog.view.time import local_second
from turnlog.view.visible import beginning, characters, width

_CODE = re.compile(r"(\x1b\[[0-9;]*m)")
_PLAIN = "\x1b[0m"


STYLE = LineStyle(room=80, has_colour=True, moment=local_second, unfolding="Enter")


def bare(line: str) -> str:
    """A painted line without its colours."""
    return _CODE.sub("", line)


def split_painted(line: str, room: int) -> list[str]:
    """A painted line as as many lines as it needs, each indented as it is, all in its colours."""
    text = bare(line)
    if width(text) <= room:
        return [line]
    margin = " " * min(len(text) - len(text.lstrip(" ")), room // 2)
    lines: list[str] = []
    current, left, code = "", room, ""
    for part in _CODE.split(line):
        if _CODE.fullmatch(part):
            current, code = current + part, part.replace(_PLAIN, "")
            continue
        while part:
            if not (piece := beginning(part, left)) and left >= room - len(margin):
                piece = next(iter(characters(part)))  # wider than all there is
            if piece:
                current, left, part = current + piece, left - width(piece), part[len(piece) :]
            else:
                lines.append(current + (_PLAIN if code else ""))
                current, left = margin + code, room - len(margin)
    return [*lines, current]
