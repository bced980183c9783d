"""Matching the lines of two versions of a file: each line of the newer one with a line of the older one.

Lines in the same order in both versions are matched first. Remaining equal lines were moved. Identical lines are
matched by their order; a line without a letter or a digit is moved only together with a line next to it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import gt
from typing import NamedTuple

NEW = -1
_LARGEST_TABLE = 250_000
_find_word = re.compile(rb"[0-9A-Za-z\x80-\xff]").search


def matches(old: Sequence[bytes], new: Sequence[bytes]) -> list[int]:
    """For each line of the newer version its index in the older one; `NEW` if it has none."""
    alignment = _Alignment(old, new)
    alignment.match()
    return alignment.origins


def has_word(line: bytes) -> bool:
    """Whether a line has content of its own: a letter or a digit."""
    return _find_word(line) is not None


class _Part(NamedTuple):
    """Lines of the older version, and the lines of the newer one that they are compared with. Ends are exclusive."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int

    def gaps(self, pairs: Sequence[tuple[int, int]]) -> Iterator[_Part]:
        """The parts before, between and behind matched lines, as far as both versions have lines there."""
        old_start, old_end, new_start, new_end = self
        for old_index, new_index in (*pairs, (old_end, new_end)):
            if old_start < old_index and new_start < new_index:
                yield _Part(old_start, old_index, new_start, new_index)
            old_start, new_start = old_index + 1, new_index + 1


class _Alignment:
    """Two versions, and the matches that were found so far."""

    def __init__(self, old: Sequence[bytes], new: Sequence[bytes]) -> None:
        self._old = old
        self._new = new
        self.origins = [NEW] * len(new)

    def match(self) -> None:
        """Match all lines that can be matched."""
        part = self._match_ends(_Part(0, len(self._old), 0, len(self._new)))
        if part is not None and not self._match_single(part):
            self._match_in_order(part)
            self._match_moved(part)

    def _match_ends(self, part: _Part) -> _Part | None:
        """Match the lines that are equal at the beginning and at the end.

        Returns the part between them, if both versions have lines there.
        """
        old, new = self._old, self._new
        old_start, old_end, new_start, new_end = part
        most = min(old_end - old_start, new_end - new_start)
        if old[old_start : old_start + most] == new[new_start : new_start + most]:
            first, last = most, 0
        else:
            first = last = 0
            while old[old_start + first] == new[new_start + first]:
                first += 1
            while last < most - first and old[old_end - 1 - last] == new[new_end - 1 - last]:
                last += 1
        self.origins[new_start : new_start + first] = range(old_start, old_start + first)
        if last:
            self.origins[new_end - last : new_end] = range(old_end - last, old_end)
        if first + last == most:
            return None
        return _Part(old_start + first, old_end - last, new_start + first, new_end - last)

    def _match_single(self, part: _Part) -> bool:
        """The simple case, without repeated and moved lines. Returns whether it applies."""
        old = self._old[part.old_start : part.old_end]
        new = self._new[part.new_start : part.new_end]
        old_indexes = dict(zip(old, range(part.old_start, part.old_end), strict=True))
        if len(old_indexes) < len(old) or len(set(new)) < len(new):
            return False
        origins = [old_indexes.get(line, NEW) for line in new]
        kept = [origin for origin in origins if origin != NEW]
        if any(map(gt, kept, kept[1:])):
            return False
        self.origins[part.new_start : part.new_end] = origins
        return True

    # ── lines in the same order ───────────────────────────────────────────────────────────────────

    def _match_in_order(self, whole: _Part) -> None:
        """Match lines that both versions have in the same order."""
        waiting = [whole]
        while waiting:
            part = self._match_ends(waiting.pop())
            if part is None:
                continue
            anchors = self._anchors(part)
            for old_index, new_index in anchors:
                self.origins[new_index] = old_index
            if anchors:
                waiting += part.gaps(anchors)
            else:
                self._match_common(part)

    def _anchors(self, part: _Part) -> list[tuple[int, int]]:
        """Lines that occur once in each version, as many of them as are in the same order."""
        old_start, old_end, new_start, new_end = part
        old, new = self._old[old_start:old_end], self._new[new_start:new_end]
        old_counts, new_counts = Counter(old), Counter(new)
        once = {line for line, number in old_counts.items() if number == 1 and new_counts.get(line) == 1}
        old_indexes = {line: index for index, line in enumerate(old, start=old_start) if line in once}
        pairs = [(old_indexes[line], index) for index, line in enumerate(new, start=new_start) if line in once]
        if all(one[0] < other[0] for one, other in pairwise(pairs)):
            return pairs
        return _rising(pairs)

    def _match_common(self, part: _Part) -> None:
        """Match the longest common subsequence if no line occurs only once; skipped if that would take too long."""
        old, new = self._old, self._new
        shared = set(old[part.old_start : part.old_end]).intersection(new[part.new_start : part.new_end])
        old_indexes = [index for index in range(part.old_start, part.old_end) if old[index] in shared]
        new_indexes = [index for index in range(part.new_start, part.new_end) if new[index] in shared]
        if not shared or len(old_indexes) * len(new_indexes) > _LARGEST_TABLE:
            return
        lengths = _common_lengths([old[index] for index in old_indexes], [new[index] for index in new_indexes])
        i = j = 0
        while i < len(old_indexes) and j < len(new_indexes):
            if old[old_indexes[i]] == new[new_indexes[j]]:
                self.origins[new_indexes[j]] = old_indexes[i]
                i, j = i + 1, j + 1
            elif lengths[i + 1][j] >= lengths[i][j + 1]:
                i += 1
            else:
                j += 1

    # ── lines that moved ──────────────────────────────────────────────────────────────────────────

    def _match_moved(self, part: _Part) -> None:
        """Match the remaining lines: removed in one place and added in another."""
        old, new, origins = self._old, self._new, self.origins
        added = [index for index in range(part.new_start, part.new_end) if origins[index] == NEW]
        removed = set(range(part.old_start, part.old_end)).difference(origins[part.new_start : part.new_end])
        if not added or not removed:
            return
        removed_by_text: defaultdict[bytes, list[int]] = defaultdict(list)
        for index in sorted(removed, reverse=True):
            if has_word(old[index]):
                removed_by_text[old[index]].append(index)
        counts = Counter(new[index] for index in added)
        for only_once in (True, False):  # a line that occurs once shows where its neighbours were
            for index in added:
                equal = removed_by_text.get(new[index], [])
                while equal and equal[-1] not in removed:
                    equal.pop()
                if not equal or origins[index] != NEW:
                    continue
                if not only_once or (len(equal) == 1 and counts[new[index]] == 1):
                    self._match_block(equal[-1], index, removed, part)

    def _match_block(self, old_index: int, new_index: int, removed: set[int], part: _Part) -> None:
        """Match a line that moved, and the lines next to it that moved with it."""
        old, new, origins = self._old, self._new, self.origins
        removed.discard(old_index)
        origins[new_index] = old_index
        for step in (1, -1):
            i, j = old_index + step, new_index + step
            while i in removed and part.new_start <= j < part.new_end and origins[j] == NEW and old[i] == new[j]:
                removed.discard(i)
                origins[j] = i
                i, j = i + step, j + step


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence of pairs of indexes in which those of the older version rise, too."""
    smallest_ends: list[int] = []
    """The smallest old index at which a subsequence of each length ends …"""
    end_numbers: list[int] = []
    """… and the number of that pair."""
    numbers_before: list[int] = []
    """For each pair, the number of the one before it in its subsequence."""
    for number, (old_index, _) in enumerate(pairs):
        length = bisect_left(smallest_ends, old_index)
        numbers_before.append(end_numbers[length - 1] if length else -1)
        smallest_ends[length : length + 1] = [old_index]
        end_numbers[length : length + 1] = [number]
    rising: list[tuple[int, int]] = []
    number = end_numbers[-1] if end_numbers else -1
    while number >= 0:
        rising.append(pairs[number])
        number = numbers_before[number]
    return rising[::-1]


def _common_lengths(old: Sequence[bytes], new: Sequence[bytes]) -> list[list[int]]:
    """For each index in both: the length of the longest common subsequence of what begins there."""
    lengths = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        row, below = lengths[i], lengths[i + 1]
        line = old[i]
        for j in range(len(new) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if line == new[j] else max(below[j], row[j + 1])
    return lengths
