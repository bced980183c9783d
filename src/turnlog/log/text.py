"""Texts: made short for people, looked through with patterns, and JSON for programs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, AnyStr

_JOINER = "\u200d"


def one_line(text: str, limit: int) -> str:
    """A text without line breaks, cut."""
    return cut(" ".join(text.split(maxsplit=limit + 1)[: limit + 1]), limit)  # of a long text, only the beginning


def cut(text: str, limit: int) -> str:
    """At most `limit` characters and `…`; nothing that is drawn as one character is torn apart."""
    if len(text) <= limit:
        return text
    end = next((index for index in range(limit, 0, -1) if _is_between(text, index)), limit)
    return text[:end].rstrip() + "…"


def _is_between(text: str, index: int) -> bool:
    """Whether one character ends there and another begins."""
    import unicodedata  # only who shortens something needs it

    before, after = text[index - 1], text[index]
    if before == _JOINER or after == _JOINER or unicodedata.category(after)[0] == "M":
        return False
    if "\U0001f3fb" <= after <= "\U0001f3ff":  # a colour of skin
        return False
    flags = 0
    while flags < index and "\U0001f1e6" <= text[index - 1 - flags] <= "\U0001f1ff":
        flags += 1
    return flags % 2 == 0 or not "\U0001f1e6" <= after <= "\U0001f1ff"


def json_bytes(value: Any) -> bytes:
    """JSON on one line; of text that is no Unicode, escapes."""
    import msgspec

    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        import json

        return json.dumps(msgspec.to_builtins(value)).encode()


if TYPE_CHECKING:

    def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
        """As `re.compile`."""
        ...

else:

    class pattern:
        """As `re.compile`, but compiled when it is first used: to compile all takes longer than many a command.

        Only the first use of a method is slower: from then on the pattern's own stands here.
        """

        def __init__(self, text: AnyStr, flags: int = 0) -> None:
            self._said = text, flags

        def __getattr__(self, name: str) -> Any:
            value = getattr(re.compile(*self._said), name)
            setattr(self, name, value)
            return value
