"""The last line: what is to be known here, and the keys that matter most, each of which may be clicked."""

from __future__ import annotations

from typing import NamedTuple

from turnlog.view.terminal.typeset import LineStyle
from turnlog.view.visible import clip, width


class KeyHint(NamedTuple):
    """A key, what it does in a word, and the action that does it."""

    key: str
    word: str
    action: str


class FootLine(NamedTuple):
    """The line, and the columns of each action on it."""

    text: str
    places: list[tuple[int, int, str]]

    def action_at(self, x: int) -> str:
        """What a click there does; empty for nothing."""
        return next((action for begin, end, action in self.places if begin <= x < end), "")


def foot_line(message: str, hints: list[KeyHint], room: int, style: LineStyle) -> FootLine:
    """The message at the left, as many keys as fit at the right: the first ones matter most."""
    left = clip(message, room)
    free = room - width(left) - 2
    shown: list[KeyHint] = []
    for hint in hints:
        size = len(hint.key) + len(hint.word) + 1 + (2 if shown else 0)
        if size > free:
            break
        free -= size
        shown.append(hint)
    text = left + " " * (free + 2) if shown else left
    at = width(text)
    places: list[tuple[int, int, str]] = []
    for number, (key, word, action) in enumerate(shown):
        if number:
            text, at = text + "  ", at + 2
        places.append((at, at + len(key) + len(word) + 1, action))
        at += len(key) + len(word) + 1
        text += style.paint(key, "bold") + style.paint(f" {word}", "dim")
    return FootLine(text, places)
