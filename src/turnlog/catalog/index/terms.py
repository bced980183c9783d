"""Search terms (words, phrases, code): which texts have them, and where. Pure.

An index finds whole words and beginnings of words. Code is searched by its words first, and then in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from turnlog.log.startup import NamedTuple, pattern

LONGEST_WORD = 200
"""The length at which an index truncates words, if it does."""
_TOKEN = pattern(r"[^\W_]+")
_BEGIN = r"(?<![^\W_])"
_END = r"(?![^\W_])"
# Characters beside which an index splits words as we do. Words beside any other are searched in the text.
_PLAIN = r"[\x00-\u024f\u0370-\u03ff\u0400-\u052f\u2010-\u2027\u2030-\u205e]+"


class Term(NamedTuple):
    """A term that has to be in the text, or, negated, must not be."""

    kind: str
    """`word`, `phrase`, `prefix`; `code`, which begins where a word does; or `part`, which begins anywhere."""
    text: str
    negated: bool = False


def fold(text: str) -> str:
    """The text in lower case, with each character at its old position."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(one.lower() if len(one.lower()) == 1 else one for one in text)


def unaccented(text: str) -> str:
    """The text without accents, with each character at its old position."""
    from unicodedata import normalize

    return "".join(one if one.isascii() else normalize("NFD", one)[0] for one in text)


def words_of(text: str) -> list[str]:
    """The words of a text as an index has them: lower case, without accents."""
    if text.isascii():
        return _TOKEN.findall(text.lower())
    from unicodedata import combining, normalize

    bare = "".join(one for one in normalize("NFD", text) if not combining(one))
    return _TOKEN.findall(normalize("NFC", bare).lower())


def may_begin_inside(term: Term) -> bool:
    """Whether a term is code that begins with a letter, and so may begin in the middle of a word."""
    return term.kind == "code" and not term.negated and _TOKEN.match(term.text) is not None


def phrases_of(term: Term) -> list[tuple[list[str], bool]]:
    """Runs of words that every text with the term has, each with whether its last word may be a prefix."""
    text = term.text
    if term.kind in ("word", "phrase", "prefix"):
        return [(text.split(), term.kind == "prefix")]
    phrases: list[tuple[list[str], bool]] = []
    is_run = False
    for word in _TOKEN.finditer(text):
        around = text[max(0, word.start() - 1) : word.end() + 1]
        is_sure = around.isascii() or re.fullmatch(_PLAIN, around) is not None
        if not is_sure or (term.kind == "part" and word.start() == 0):
            is_run = False
            continue
        before = phrases.pop()[0] if is_run else []
        phrases.append(([*before, word[0]], word.end() == len(text)))
        is_run = True
    return phrases


class Needle:
    """A term to be searched in folded texts."""

    def __init__(self, term: Term) -> None:
        self.term = term
        pieces = [re.escape(piece) for piece in fold(term.text).split()]
        if term.kind == "phrase":
            body = r"[\W_]+".join(pieces)
        else:
            body = r"\s+".join(pieces)
        first = _BEGIN if term.kind != "part" and _TOKEN.match(term.text) else ""
        last = {"word": _END, "phrase": _END, "prefix": r"[^\W_]*"}.get(term.kind, "")
        self._pattern = pattern(first + body + last)
        # Most texts do not match, and this check is many times faster.
        self._literal = max(fold(term.text).split(), key=len)

    def is_in(self, folded: str) -> bool:
        """Whether a text has the term."""
        if self.term.kind == "phrase":
            return f" {' '.join(words_of(self.term.text))} " in f" {' '.join(words_of(folded))} "
        return self._literal in folded and self._pattern.search(folded) is not None

    def places(self, folded: str) -> Iterator[tuple[int, int]]:
        """The positions of the term in a text."""
        if self._literal in folded:
            for match in self._pattern.finditer(folded):
                yield match.span()


def distance(one: str, other: str, most: int) -> int:
    """The number of letters that differ, are missing, extra or swapped; above `most`, the exact number is unknown."""
    if abs(len(one) - len(other)) > most or len(set(one).difference(other)) > most:
        return most + 1  # each letter that the other word lacks is a difference
    before, row = [0] * (len(other) + 1), list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        older, before = before, row
        row = [i]
        for j, b in enumerate(other, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]
