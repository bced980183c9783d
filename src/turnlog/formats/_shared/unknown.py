"""Records of types that nobody here knows: kept whole as notes, counted, and not shown in a conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from turnlog.log.entry import Custom, Entry, Note

_CLAW = r"(?s)claw\.(?!(?:message|compaction|prompt_history)\Z)(.*)"
"""claw's are no notes: they have no keys, and what was imported once has to be known again."""
_TOLD = r"(?s)(?:a record|an event|an entry) of (?:the type (.*)|an unknown type)"


class UnknownRecords:
    """How many there were of each type."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def note(self, kind: str, data: Any, what: str = "a record") -> Note:
        """One more of them, to be kept. Its words tell it from others where it has no key: they stay as they are."""
        self.count(kind)
        return Note(id="-", text=f"{what} of the type {kind}", data=data)

    def count(self, kind: str) -> None:
        """One more of them, which is kept in another way."""
        self._counts[kind] = self._counts.get(kind, 0) + 1

    def told(self) -> Iterator[str]:
        """Each type, and how many."""
        for kind, count in self._counts.items():
            yield f"{count} record{'s' * (count != 1)} of the unknown type {kind!r:.60}: kept, and not shown"


def unknown_type(entry: Entry) -> str | None:
    """The type of a record that was kept because nobody knew it; None for every other entry."""
    if isinstance(entry, Custom):
        found = re.fullmatch(_CLAW, entry.kind)
    elif isinstance(entry, Note) and entry.data is not None:
        found = re.fullmatch(_TOLD, entry.text)
    else:
        return None
    return None if found is None else found[1] or "?"
