"""The numbers of turns, as people name them: from 1 on, in the order in which they began."""

from __future__ import annotations

from turnlog.log.entry import AnyEntry, Turn


def number_turn(numbers: dict[str, int], entry: AnyEntry) -> int | None:
    """Number the turn that an entry begins, from 1 on. Returns its number, or None if the entry begins no new turn."""
    if not isinstance(entry, Turn) or entry.state != "begin" or entry.turn is None or entry.turn in numbers:
        return None
    numbers[entry.turn] = len(numbers) + 1
    return numbers[entry.turn]
