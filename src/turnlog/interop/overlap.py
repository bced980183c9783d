"""The common part of a rewritten list and the list before it."""

from __future__ import annotations


def overlap(before: list[str], now: list[str]) -> tuple[int, int]:
    """Where the longest end of what was there stands in what is there now, and how long it is.

    Both are looked at from their ends, so that it is the search of a beginning: Knuth, Morris and Pratt.
    """
    if not before:
        return 0, 0
    wanted = before[::-1]
    fall = [0] * len(wanted)
    for index in range(1, len(wanted)):
        length = fall[index - 1]
        while length and wanted[index] != wanted[length]:
            length = fall[length - 1]
        fall[index] = length + (wanted[index] == wanted[length])
    best, end, length = 0, 0, 0
    for index, digest in enumerate(reversed(now)):
        while length and (length == len(wanted) or digest != wanted[length]):
            length = fall[length - 1]
        length += digest == wanted[length]
        if length > best:
            best, end = length, index + 1
    return len(now) - end, best
