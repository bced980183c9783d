"""Texts shortened for people: on one line, cut between characters."""

from __future__ import annotations

_JOINER = "\u200d"


def one_line(text: str, limit: int) -> str:
    """Return a text on one line, cut to `limit` characters."""
    return cut(" ".join(text.split(maxsplit=limit + 1)[: limit + 1]), limit)  # of a long text, only the beginning


def cut(text: str, limit: int) -> str:
    """Return at most `limit` characters and `…`; what is drawn as one character is not split."""
    if len(text) <= limit:
        return text
    end = next((index for index in range(limit, 0, -1) if _is_between(text, index)), limit)
    return text[:end].rstrip() + "…"


def _is_between(text: str, index: int) -> bool:
    """Whether a character that is drawn as one ends at `index`, and another begins."""
    import unicodedata  # loaded only to shorten something

    before, after = text[index - 1], text[index]
    if before == _JOINER or after == _JOINER or unicodedata.category(after)[0] == "M":
        return False
    if "\U0001f3fb" <= after <= "\U0001f3ff":  # a colour of skin
        return False
    flags = 0
    while flags < index and "\U0001f1e6" <= text[index - 1 - flags] <= "\U0001f1ff":
        flags += 1
    return flags % 2 == 0 or not "\U0001f1e6" <= after <= "\U0001f1ff"
