"""The lines of two versions of a file: which line of the newer one is which of the older one.

Lines that are in the same order in both are matched first. What is left and says the same was moved. Of identical
lines the order decides; one without a letter or a digit is moved only together with a line next to it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from operator import gt

NEW = -1
_LARGEST_TABLE = 250_000
_Ends = tuple[int, int, int, int]
"""A part of the older version, and a part of the newer one: where each begins, and behind which line it ends."""
_tells = re.compile(rb"[0-9A-Za-z\x80-\xff]").search


def matches(old: Sequence[bytes], new: Sequence[bytes]) -> list[int]:
    """For each line of the newer version its place in the older one; `NEW` where it has none."""
    first, last = _equal_ends(old, new, 0, len(old), 0, len(new))
    origins = [*range(first), *[NEW] * (len(new) - first - last), *range(len(old) - last, len(old))]
    a, b, c, d = first, len(old) - last, first, len(new) - last
    if a < b and c < d and not _match_single(old[a:b], new[c:d], (a, b, c, d), origins):
        _match_in_order(old, new, (a, b, c, d), origins)
        _match_moved(old, new, (a, b, c, d), origins)
    return origins


def _match_single(old: Sequence[bytes], new: Sequence[bytes], ends: _Ends, origins: list[int]) -> bool:
    """The easy way, where no line is there twice and none was moved; whether that is so."""
    a, _, c, d = ends
    places = dict(zip(old, range(a, a + len(old)), strict=True))
    if len(places) < len(old) or len(set(new)) < len(new):
        return False
    row = [places.get(line, NEW) for line in new]
    kept = [left for left in row if left != NEW]
    if any(map(gt, kept, kept[1:])):
        return False
    origins[c:d] = row
    return True


def tells(line: bytes) -> bool:
    """Whether a line says something of its own: it has a letter or a digit."""
    return _tells(line) is not None


def _equal_ends(old: Sequence[bytes], new: Sequence[bytes], a: int, b: int, c: int, d: int) -> tuple[int, int]:
    """How many lines are equal at the beginning and at the end of `old[a:b]` and `new[c:d]`."""
    most = min(b - a, d - c)
    if old[a : a + most] == new[c : c + most]:
        return most, 0
    first = 0
    while old[a + first] == new[c + first]:
        first += 1
    last = 0
    while last < most - first and old[b - 1 - last] == new[d - 1 - last]:
        last += 1
    return first, last


def _match_in_order(old: Sequence[bytes], new: Sequence[bytes], ends: _Ends, origins: list[int]) -> None:
    """Lines that both versions have in the same order."""
    waiting = [ends]
    while waiting:
        a, b, c, d = waiting.pop()
        first, last = _equal_ends(old, new, a, b, c, d)
        origins[c : c + first] = range(a, a + first)
        origins[d - last : d] = range(b - last, b)
        a, b, c, d = a + first, b - last, c + first, d - last
        if a >= b or c >= d:
            continue
        anchors = _anchors(old, new, a, b, c, d)
        for left, right in anchors:
            origins[right] = left
            if a < left and c < right:
                waiting.append((a, left, c, right))
            a, c = left + 1, right + 1
        if not anchors:
            _match_common(old, new, a, b, c, d, origins)
        elif a < b and c < d:
            waiting.append((a, b, c, d))


def _anchors(old: Sequence[bytes], new: Sequence[bytes], a: int, b: int, c: int, d: int) -> list[tuple[int, int]]:
    """Lines that either side has once, as many of them as are in the same order."""
    here, there = Counter(old[a:b]), Counter(new[c:d])
    once = {line for line, number in here.items() if number == 1 and there.get(line) == 1}
    places = {line: index for index, line in enumerate(old[a:b], start=a) if line in once}
    pairs = [(places[line], index) for index, line in enumerate(new[c:d], start=c) if line in once]
    if all(one[0] < other[0] for one, other in pairwise(pairs)):
        return pairs
    return _rising(pairs)


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest row of them that rises on the left, too."""
    tails: list[int] = []  # the smallest end of a row of each length …
    ends: list[int] = []
    before: list[int] = []  # … and of each pair the one before it
    for number, (left, _) in enumerate(pairs):
        length = bisect_left(tails, left)
        before.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [left]
        ends[length : length + 1] = [number]
    row: list[tuple[int, int]] = []
    number = ends[-1] if ends else -1
    while number >= 0:
        row.append(pairs[number])
        number = before[number]
    return row[::-1]


def _match_common(
    old: Sequence[bytes], new: Sequence[bytes], a: int, b: int, c: int, d: int, origins: list[int]
) -> None:
    """The longest common row where no line is there only once; nothing where that would take too long."""
    shared = set(old[a:b]).intersection(new[c:d])
    lefts = [number for number in range(a, b) if old[number] in shared]
    rights = [number for number in range(c, d) if new[number] in shared]
    if not shared or len(lefts) * len(rights) > _LARGEST_TABLE:
        return
    lengths = [[0] * (len(rights) + 1) for _ in range(len(lefts) + 1)]
    for i in range(len(lefts) - 1, -1, -1):
        row, below = lengths[i], lengths[i + 1]
        line = old[lefts[i]]
        for j in range(len(rights) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if line == new[rights[j]] else max(below[j], row[j + 1])
    i = j = 0
    while i < len(lefts) and j < len(rights):
        if old[lefts[i]] == new[rights[j]]:
            origins[rights[j]] = lefts[i]
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1


def _match_moved(old: Sequence[bytes], new: Sequence[bytes], ends: _Ends, origins: list[int]) -> None:
    """What is left: lines that were taken away in one place and are there in another."""
    a, b, c, d = ends
    added = [number for number in range(c, d) if origins[number] == NEW]
    free = set(range(a, b)).difference(origins[c:d])
    if not added or not free:
        return
    places: defaultdict[bytes, list[int]] = defaultdict(list)
    for number in sorted(free, reverse=True):
        if tells(old[number]):
            places[old[number]].append(number)
    counts = Counter(new[number] for number in added)

    def pair(left: int, right: int) -> None:
        free.discard(left)
        origins[right] = left

    def take(left: int, right: int) -> None:
        """That line, and those next to it that moved with it."""
        pair(left, right)
        for step in (1, -1):
            i, j = left + step, right + step
            while i in free and c <= j < d and origins[j] == NEW and old[i] == new[j]:
                pair(i, j)
                i, j = i + step, j + step

    for only_once in (True, False):  # a line that occurs once shows where its neighbours were
        for right in added:
            row = places.get(new[right], [])
            while row and row[-1] not in free:
                row.pop()
            if row and origins[right] == NEW and (not only_once or (len(row) == 1 and counts[new[right]] == 1)):
                take(row[-1], right)
