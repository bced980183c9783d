"""What a word, a phrase or a piece of code means: which texts have it, and where. Pure.

An index finds whole words, and words that begin so. Code is looked for by the words in it, and then in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

LONGEST_WORD = 200
"""Where an index cuts words, it cuts them here."""
_TOKEN = re.compile(r"[^\W_]+")
_BEGIN = r"(?<![^\W_])"
_END = r"(?![^\W_])"
# Where we are sure that an index splits words as we do. Words beside anything else are left to the text.
_PLAIN = r"[\x00-\u024f\u0370-\u03ff\u0400-\u052f\u2010-\u2027\u2030-\u205e]+"


class Term(NamedTuple):
    """Something that has to be in the text, or must not be."""

    kind: str
    """`word`, `phrase`, `prefix`; `code` begins where a word does, `part` anywhere."""
    text: str
    negated: bool = False


def fold(text: str) -> str:
    """Without upper case, each character where it was."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(one.lower() if len(one.lower()) == 1 else one for one in text)


def unaccented(text: str) -> str:
    """Letters without their accents, each where it was."""
    from unicodedata import normalize

    return "".join(one if one.isascii() else normalize("NFD", one)[0] for one in text)


def words_of(text: str) -> list[str]:
    """The words of a text, as an index has them: without upper case and accents."""
    if text.isascii():
        return _TOKEN.findall(text.lower())
    from unicodedata import combining, normalize

    bare = "".join(one for one in normalize("NFD", text) if not combining(one))
    return _TOKEN.findall(normalize("NFC", bare).lower())


def may_begin_inside(term: Term) -> bool:
    """Whether it is code that begins with a letter, so that it may have been meant from the middle of a word on."""
    return term.kind == "code" and not term.negated and _TOKEN.match(term.text) is not None


def phrases_of(term: Term) -> list[tuple[list[str], bool]]:
    """Runs of words that every text with the term has; and of each run, whether its last word may go on."""
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
    """One term, to be looked for in folded texts."""

    def __init__(self, term: Term) -> None:
        self.term = term
        pieces = [re.escape(piece) for piece in fold(term.text).split()]
        if term.kind == "phrase":
            body = r"[\W_]+".join(pieces)
        else:
            body = r"\s+".join(pieces)
        first = _BEGIN if term.kind != "part" and _TOKEN.match(term.text) else ""
        last = {"word": _END, "phrase": _END, "prefix": r"[^\W_]*"}.get(term.kind, "")
        self._pattern = re.compile(first + body + last)
        # Most texts do not have it, and this tells so many times faster.
        self._literal = max(fold(term.text).split(), key=len)

    def is_in(self, folded: str) -> bool:
        """Whether a text has it."""
        if self.term.kind == "phrase":
            return f" {' '.join(words_of(self.term.text))} " in f" {' '.join(words_of(folded))} "
        return self._literal in folded and self._pattern.search(folded) is not None

    def places(self, folded: str) -> Iterator[tuple[int, int]]:
        """Where a text has it."""
        if self._literal in folded:
            for found in self._pattern.finditer(folded):
                yield found.span()


def distance(one: str, other: str, most: int) -> int:
    """How many letters differ, are missing, are too many or stand the wrong way round; more than `most` is as bad."""
    if abs(len(one) - len(other)) > most or len(set(one).difference(other)) > most:
        return most + 1  # each letter that the other lacks altogether is a difference of its own
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
