"""The links of a transcript, and which of its ends the conversation is at.

A file of a gigabyte has some 300,000 of them, so they lie in flat arrays. Objects that refer to each other would take
more room, and a chain of that length cannot be freed by CPython without exhausting the stack.
"""

from __future__ import annotations

from array import array

_SAID, _LIVE, _NAMED = 1, 2, 4


class Chain:
    """Every record that has a place in the tree, in the order of the file. What it hangs on always comes before it."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._leaves = array("i")
        """For each the nearest record at or above it in which somebody spoke; -1 for none."""
        self._flags = bytearray()
        self._keys: list[str] = []

    def __contains__(self, uuid: object) -> bool:
        return uuid in self._numbers

    def hang(self, uuid: str, parent: str, key: str, *, said: bool = False, live: bool = False) -> None:
        """A record has its place: below another, standing for a node."""
        above = self._numbers.get(parent, -1)
        if above >= 0:
            self._flags[above] |= _NAMED
        number = self._numbers[uuid] = len(self._keys)
        self._leaves.append(number if said else self._leaves[above] if above >= 0 else -1)
        self._flags.append((_SAID if said else 0) | (_LIVE if live else 0))
        self._keys.append(key)

    def place(self, uuid: str) -> str:
        """The key of the node here that a record stands for; "" for none."""
        number = self._numbers.get(uuid)
        return self._keys[number] if number is not None else ""

    def redirect(self, uuid: str, key: str) -> None:
        """Whoever hangs on that record goes on behind another node."""
        self._keys[self._numbers[uuid]] = key

    def live(self) -> tuple[str, bool]:
        """The key of the node where the conversation goes on, as the program itself decides.

        Of all ends the last in the file, and rather one where people spoke: then no earlier one can be it.
        """
        best, rank, found = -1, (False, -1), -1
        for end, flags in enumerate(self._flags):
            if flags & _NAMED:
                continue
            leaf = self._leaves[end]
            now = (leaf >= 0 and bool(self._flags[leaf] & _LIVE), leaf)
            if leaf >= 0 and (best < 0 or now >= rank):
                best, rank, found = leaf, now, end
        return (self._keys[found], rank[0]) if found >= 0 else ("", False)
