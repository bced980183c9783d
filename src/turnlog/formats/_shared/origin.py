"""Which agent an entry was read from, what its record had besides, and records of types that nobody here knows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from turnlog.interop.problem import Problem, tell
from turnlog.interop.value import fields
from turnlog.log.entry import AnyEntry, Entry, Note

UNKNOWN = "unknown_type"
"""In the `origin` of an entry: the type of a record that nobody here knew."""


def origin_of(entry: AnyEntry, agent: str) -> dict[str, Any] | None:
    """What an agent's own record had besides, for an entry that was one."""
    origin = fields(entry.origin)
    return origin if origin.get("agent") == agent else None


def is_of(entry: AnyEntry, agent: str) -> bool:
    """Whether an entry was a record of that agent's."""
    return origin_of(entry, agent) is not None


def unknown_type(entry: Entry) -> str | None:
    """The type of a record that was kept because nobody knew it; None for every other entry."""
    kind = fields(entry.origin).get(UNKNOWN)
    return kind if isinstance(kind, str) else None


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
