"""Several sessions that fit, and it was not said which: an error that lists them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from turnlog.errors import Ambiguous

_NAMED = 5


class Candidate(Struct, frozen=True):
    """One that was perhaps meant: what to type for it, and what to recognise it by."""

    name: str
    id: str
    agent: str | None
    at: datetime | None
    title: str | None


class SeveralFit(Ambiguous):
    """A word that means more than one session; `is_numbered` ones may be chosen by their number."""

    def __init__(self, message: str, fits: Sequence[Candidate], *, hint: str | None, is_numbered: bool = False) -> None:
        some = ", ".join(item.name for item in fits[:_NAMED]) + (" …" if len(fits) > _NAMED else "")
        super().__init__(f"{message}: {some}", hint=hint)
        self.brief = message
        """The message without the names, for where they are listed beside it."""
        self.candidates = list(fits)
        self.is_numbered = is_numbered
