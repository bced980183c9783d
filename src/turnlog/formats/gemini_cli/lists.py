"""The lists of messages that a chat had, as a trie: a list that was there before is known again."""

from __future__ import annotations

from array import array
from typing import Any

from msgspec import Struct


class ListedMessage(Struct, frozen=True, gc=False):
    """A message of a new list, and whether it only says again what tools answered."""

    id: str
    record: dict[str, Any]
    is_repeat: bool


class ListItem(Struct, frozen=True, gc=False):
    """One message of the list: its id, its first node ("" for none), the last one at or before it, and its index."""

    id: str
    first: str
    last: str
    index: int


class ListTrie:
    """Every list seen. An index stands for a list up to one of its messages; 0 is the empty list."""

    def __init__(self) -> None:
        self._links = array("q", [0])
        """For each index a hash of the index before it and of the message there."""
        self._jumps: dict[int, int] = {}
        """The indexes that are not the next one, by that hash."""
        self.items: list[ListItem | None] = [None]
        """What stands at an index, if the conversation can go on from there."""

    def index_of_next(self, index: int, id: str) -> int:
        """The index behind another one at which a message stands, new or not."""
        number = len(self._links)
        if (index + 1 < number or self._jumps) and (there := self.index_after(index, id)):
            return there
        self._links.append(link := hash((index, id)))
        self.items.append(None)
        if number != index + 1:
            self._jumps[link] = number
        return number

    def index_after(self, index: int, id: str) -> int:
        """That index if there is one; 0 if not."""
        link, number = hash((index, id)), index + 1
        return number if number < len(self._links) and self._links[number] == link else self._jumps.get(link, 0)

    def common_prefix(self, listed: list[ListedMessage]) -> list[ListItem]:
        """As much of a list as there was before."""
        walked: list[ListItem] = []
        index = 0
        for message in listed:
            if message.is_repeat:
                walked.append(ListItem(message.id, "", walked[-1].last if walked else "", index))
                continue
            index = self.index_after(index, message.id)
            if not index:
                break
            walked.append(self.items[index] or ListItem(message.id, "", "", index))
        return walked
