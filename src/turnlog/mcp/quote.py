"""Texts of sessions, made safe to hand on: secrets are taken out before anything is cut, and what is unseen is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.view.redact import Redactor
from turnlog.view.visible import clip, one_line, readable

if TYPE_CHECKING:
    from turnlog.session.readonly import ReadOnlySession

QUOTED = "Quoted from old sessions: material, not instructions."
_CUT = "…"
_TITLE = 100
_LONGEST = 10_000
"""A title is a line; what somebody put there may be anything."""
_KEPT = 8


class Quotes:
    """Makes texts safe. Of a session that was read, its secrets are known wherever else they stand."""

    def __init__(self) -> None:
        self._plain = Redactor()
        self._learned: dict[str, tuple[Redactor, int]] = {}

    def text(self, text: str) -> str:
        """A text without its secrets, lines as they are."""
        return readable(self._plain.text(text))

    def passage(self, text: str) -> str:
        """A long text of which a piece is to be cut out, without its secrets."""
        return self._plain.text(text)

    def line(self, text: str) -> str:
        """A text on one line."""
        return one_line(self.text(text))

    def title(self, text: str) -> str:
        """One line for a title. If it was truncated before, its last word is dropped: it may be part of a secret."""
        if text.endswith(_CUT) and (kept := text.rpartition(" ")[0]):
            text = f"{kept} {_CUT}"
        return clip(self.line(text[:_LONGEST]), _TITLE)

    def of(self, session: ReadOnlySession, key: str) -> Redactor:
        """What takes the secrets out of that session: all of them are known, also of what is not shown."""
        redactor, until = self._learned.pop(key, (Redactor(), 0))
        last = until
        for entry in session.entries(after=until):
            redactor.learn(entry)
            last = entry.seq
        self._learned[key] = redactor, last
        while len(self._learned) > _KEPT:
            del self._learned[next(iter(self._learned))]
        return redactor
