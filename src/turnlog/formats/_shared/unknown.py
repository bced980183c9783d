"""Which notes are records of types that nobody here knows: they are not shown in a conversation."""

from __future__ import annotations

import re

from turnlog.log.entry import Custom, Entry, Note

_CLAW = r"(?s)claw\.(?!(?:message|compaction|prompt_history)\Z)(.*)"
"""claw's are no notes: they have no keys, and what was imported once has to be known again."""
_TOLD = r"(?s)(?:a record|an event|an entry) of (?:the type (.*)|an unknown type)"


def unknown_type(entry: Entry) -> str | None:
    """The type of a record that was kept because nobody knew it; None for every other entry."""
    if isinstance(entry, Custom):
        match = re.fullmatch(_CLAW, entry.kind)
    elif isinstance(entry, Note) and entry.data is not None:
        match = re.fullmatch(_TOLD, entry.text)
    else:
        return None
    return None if match is None else match[1] or "?"
