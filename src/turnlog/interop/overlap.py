"""The common part of a rewritten list and the list before it."""

from __future__ import annotations

from typing import NamedTuple


class Overlap(NamedTuple):
    """Where a common part begins in a list, and how long it is; a length of 0 if there is none."""

    start: int
    length: int


def overlap(before: list[str], now: list[str]) -> Overlap:
    """The longest end of `before` that occurs in `now`.

    Both are searched backwards, so that it is the search for a beginning: Knuth, Morris and Pratt.
    """
    if not before:
        return Overlap(0, 0)
    pattern = before[::-1]
    prefix_lengths = [0] * len(pattern)
    for index in range(1, len(pattern)):
        length = prefix_lengths[index - 1]
        while length and pattern[index] != pattern[length]:
            length = prefix_lengths[length - 1]
        prefix_lengths[index] = length + (pattern[index] == pattern[length])
    best, end, length = 0, 0, 0
    for index, digest in enumerate(reversed(now)):
        while length and (length == len(pattern) or digest != pattern[length]):
            length = prefix_lengths[length - 1]
        length += digest == pattern[length]
        if length > best:
            best, end = length, index + 1
    return Overlap(len(now) - end, best)
