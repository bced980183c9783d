"""What is wrong with a file: told, and not too often. Records that nobody here knows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from turnlog.formats import Problem
from turnlog.formats._shared.origin import UNKNOWN
from turnlog.log.entry import Note

MAX_PROBLEMS = 1000
Problems = list[Problem]


def tell(
    problems: list[Problem], problem: Problem, most: int = MAX_PROBLEMS, rest: str = "more problems than are told here"
) -> None:
    """Add a problem; of very many, the rest is told as one."""
    if len(problems) < most:
        problems.append(problem)
    elif len(problems) == most:
        problems.append(Problem(rest))


def report(
    problems: list[Problem], what: str, *, where: str = "", offset: int | None = None, length: int | None = None
) -> None:
    """Add a problem in a word, with where it is."""
    tell(problems, Problem(what, where, offset, length))


def of_unknown_role(
    role: Any, data: Any, at: datetime | None, problems: list[Problem], offset: int | None = None
) -> Note:
    """A message of which nobody here knows who said it, kept as a note."""
    tell(problems, Problem(f"a message of the unknown role {role!r:.40}: kept as a note", offset=offset))
    return Note(text="a message of an unknown role", data=data, at=at)


class UnknownRecords:
    """Records of types that nobody here knows: kept whole as notes, counted, and not shown in a conversation."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._counts: dict[str, int] = {}

    def note(self, kind: str, data: Any, what: str = "a record") -> Note:
        """One more of them, to be kept. Its words tell it from others where it has no key: they stay as they are."""
        self.count(kind)
        return Note(id="-", text=f"{what} of the type {kind}", data=data, origin={"agent": self._agent, UNKNOWN: kind})

    def count(self, kind: str) -> None:
        """One more of them, which is kept in another way."""
        self._counts[kind] = self._counts.get(kind, 0) + 1

    def report(self, problems: list[Problem]) -> None:
        """Tell of each type, and how many there were."""
        for kind, count in self._counts.items():
            what = f"{count} record{'s' * (count != 1)} of the unknown type {kind!r:.60}: kept, and not shown"
            tell(problems, Problem(what, is_news=True))
