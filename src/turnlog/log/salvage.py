"""Salvage: the entries in a line that is not one, because several share it or a torn entry comes before."""

from __future__ import annotations

import re

from turnlog.log.codec import MAX_LINE, Flawed, Unreadable, decode, is_verified
from turnlog.log.entry import AnyEntry


def salvage(line: bytes) -> list[tuple[int, int, AnyEntry]]:
    """Find verified entries that share one line, or follow a torn entry on it: (start, length, entry) for each.

    JSON nested in a caller's data is never taken for an entry. A stretch counts only if it ends where an entry can end
    (complete JSON never contains `}{`, and the last stretch must end the line), and only if it begins where the text
    before it allows no nested value.
    """
    entries: list[tuple[int, int, AnyEntry]] = []
    start = 0
    while start < len(line):
        cut = line.find(b'}{"type":"', start)
        end = len(line) if cut < 0 else cut + 1
        budget = 4 * MAX_LINE
        at = start
        while at >= 0 and budget > 0:
            piece = line[at:end]
            budget -= len(piece)
            if is_verified(piece) and not _takes_a_value(line[start:at]):
                try:
                    entry = decode(piece)
                except Unreadable:
                    break
                if not isinstance(entry, Flawed):
                    entries.append((at, len(piece), entry))
                break
            at = line.find(b'{"type":"', at + 1, end)
        start = end
    return entries


_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


def _takes_a_value(torn: bytes) -> bool:
    """Whether a value could come next after this incomplete JSON text."""
    rest = _STRING.sub(b"0", torn)
    if b'"' in rest:
        return False  # it ends inside a string
    if rest[-1:] != b",":
        return rest[-1:] in (b":", b"[")
    closed = 0
    for character in reversed(rest):
        if character in b"]}":
            closed += 1
        elif character in b"[{":
            if not closed:
                return character == ord("[")
            closed -= 1
    return False
