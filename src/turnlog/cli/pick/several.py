"""Several sessions that fit, and it was not said which: an error that lists them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from turnlog.errors import Ambiguous

_SHOWN = 40
_NAMED = 5


class Candidate(NamedTuple):
    """One that was perhaps meant: what to type for it, and what to recognise it by."""

    name: str
    id: str
    agent: str | None
    at: datetime | None
    title: str | None

    def plain(self) -> dict[str, str | None]:
        """It as JSON says it."""
        at = None if self.at is None else self.at.isoformat()
        return {"name": self.name, "id": self.id, "agent": self.agent, "at": at, "title": self.title}


class Several(Ambiguous):
    """`lines` are for people, `candidates` for programs; `numbered` ones may be chosen by number."""

    def __init__(self, message: str, found: Sequence[Candidate], *, hint: str, numbered: bool = False) -> None:
        some = ", ".join(item.name for item in found[:_NAMED]) + (" …" if len(found) > _NAMED else "")
        super().__init__(f"{message}: {some}", hint=hint)
        self.brief = message
        """The message without the names, for where `lines` stand beside it."""
        self.candidates = list(found)
        self._numbered = numbered

    @property
    def lines(self) -> list[str]:
        """A table of them."""
        from turnlog.cli.draw.text import moment, table

        rows = [
            (str(number), item.name, item.agent or "", moment(item.at)[:16], item.title or "")
            for number, item in enumerate(self.candidates[:_SHOWN], start=1)
        ]
        head = ("KEY", "SESSION", "AGENT", "WHEN", "TITLE")
        lines = table(head, rows, right=(0,)) if self._numbered else table(head[1:], [row[1:] for row in rows])
        more = len(self.candidates) - _SHOWN
        return [*lines, f"… {more:,} more"] if more > 0 else lines
