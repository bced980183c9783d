"""The part of a text that shows best why it matches, on one line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from turnlog.catalog.index.terms import Needle, fold, unaccented

WIDTH = 160
LINE = " ⏎ "
"""Stands for the end of a line and the indentation of the next."""
MORE = "…"
_MOST = 200
"""The maximum number of places examined for each needle."""
_LEAD = 40
"""How many characters a snippet has before its first mark."""
_SLACK = 12
"""How far a cut may move to fall between two words."""
_LONGEST = 64
"""How far a cut may move so that one character on the screen stays in one piece."""
_BLANKS = re.compile(r"\s+")
_BREAK = re.compile(r"[\n\r\v\f\x85\u2028\u2029]")

Marks = tuple[tuple[int, int], ...]


def snippet(text: str, needles: Sequence[Needle], width: int = WIDTH) -> tuple[str, Marks]:
    """A piece of the text, and the positions of the needles in it."""
    text = text.rstrip()
    places = _places(text, needles)
    begin = _begin(text, _best(places, width) - min(_LEAD, width // 4))
    line, at = MORE if begin else "", begin
    marks: list[tuple[int, int]] = []
    for start, end in [*_merged(places, begin), (len(text), len(text))]:
        far = at + 8 * width
        line += _plain(text[at : min(start, far)] if line else text[at : min(start, far)].lstrip())
        at = min(start, far)
        if at < start or len(line) >= width:
            break
        before = len(line)
        line += _plain(text[start : min(end, start + width)])
        at = min(end, start + width)
        if before < len(line):
            marks.append((before, len(line)))
    return _cut(line, marks, width, is_all=at == len(text))


def _places(text: str, needles: Sequence[Needle]) -> list[tuple[int, int, int]]:
    """The start and the end of each occurrence, and the number of its needle."""
    folded, bare = fold(text), ""
    ranges: list[tuple[int, int, int]] = []
    for number, needle in enumerate(needles):
        here = list(islice(needle.places(folded), _MOST))
        if not here and not (text.isascii() and needle.term.text.isascii()):
            bare = bare or unaccented(folded)
            plain = Needle(needle.term._replace(text=unaccented(needle.term.text)))
            here = list(islice(plain.places(bare), _MOST))
        ranges.extend((start, end, number) for start, end in here)
    return sorted(ranges)


def _best(places: list[tuple[int, int, int]], width: int) -> int:
    """The start of the piece with the most needles."""
    best, most = 0, 0
    for index, (start, _, _) in enumerate(places):
        seen = {number for _, end, number in places[index : index + 50] if end - start <= width * 3 // 4}
        if len(seen) > most:
            best, most = start, len(seen)
    return best


def _merged(places: list[tuple[int, int, int]], begin: int) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end, _ in places:
        if start < begin:
            continue
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _begin(text: str, at: int) -> int:
    """A good place to begin near `at`."""
    if at <= _SLACK:
        return 0
    blank = _BLANKS.search(text, at - 1, at + _SLACK)
    if blank:
        return blank.end()
    for back in range(at, at - _LONGEST, -1):
        if back <= 0 or not _is_inside(text, back):
            return max(0, back)
    return at


def _plain(piece: str) -> str:
    return _BLANKS.sub(lambda match: LINE if _BREAK.search(match[0]) else " ", piece)


def _cut(line: str, marks: list[tuple[int, int]], width: int, *, is_all: bool) -> tuple[str, Marks]:
    line = line.rstrip()
    length = len(line)
    if not is_all or length > width:
        length = min(length, width - len(MORE))
        blank = line.rfind(" ", max(0, length - _SLACK), length + 1)
        if blank > 0 and not any(start < blank < end for start, end in marks):
            length = blank
        else:
            length = next(back for back in range(length, -1, -1) if not _is_inside(line, back))
        length = len(line[:length].rstrip(LINE))
        line = line[:length] + MORE
    return line, tuple((start, min(end, length)) for start, end in marks if start < length)


def _is_inside(text: str, at: int) -> bool:
    """Whether a cut at `at` would split what is one character on the screen."""
    if not 0 < at < len(text):
        return False
    left, right = text[at - 1], text[at]
    if right < "\u0300":
        return left == "\r" and right == "\n"
    if left == "\u200d" or right == "\u200d" or "\u1160" <= right <= "\u11ff" or "\U0001f3fb" <= right <= "\U0001f3ff":
        return True
    if "\U0001f1e6" <= right <= "\U0001f1ff":
        run = re.search("[\U0001f1e6-\U0001f1ff]*$", text[max(0, at - _LONGEST) : at])
        return run is not None and len(run[0]) % 2 == 1
    from unicodedata import category

    return category(right).startswith("M") or "\U000e0020" <= right <= "\U000e007f"
