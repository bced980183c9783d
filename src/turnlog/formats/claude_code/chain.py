"""The links of a transcript, and which of its ends the conversation is at."""

from __future__ import annotations

from msgspec import Struct


class Link(Struct, gc=False):
    """One record of the chain: what it hangs on, and where it is here."""

    parent: str
    key: str
    number: int
    is_said: bool
    is_live: bool


class Chain:
    """Every record that has a place in the tree."""

    def __init__(self) -> None:
        self.links: dict[str, Link] = {}
        self._parents: set[str] = set()

    def hang(self, uuid: str, link: Link) -> None:
        """A record has its place."""
        self.links[uuid] = link

    def names(self, parent: str) -> None:
        """Somebody hangs on that record."""
        self._parents.add(parent)

    def place(self, uuid: str) -> str:
        """The key of the node here that a record stands for; "" for none."""
        link = self.links.get(uuid)
        return link.key if link is not None else ""

    def redirect(self, key: str, last: str) -> None:
        """Whoever hangs on that node hangs on another one."""
        for uuid in (key, key.removesuffix("#results")):
            link = self.links.get(uuid)
            if link is not None and link.key == key:
                link.key = last

    def live(self) -> str:
        """The key of the node where the conversation goes on, as the program itself decides.

        Of all ends the last in the file, and rather one where people spoke.
        """
        ends = [uuid for uuid in self.links if uuid not in self._parents]
        best, rank = "", (False, 0)
        for uuid in {leaf for end in ends if (leaf := self._leaf(end))}:
            link = self.links[uuid]
            found = (link.is_live, link.number)
            if not best or found > rank:
                best, rank = uuid, found
        return self.place(best)

    def _leaf(self, uuid: str) -> str:
        """The nearest record at or above that one in which somebody spoke."""
        seen: set[str] = set()
        while uuid in self.links and uuid not in seen:
            seen.add(uuid)
            if self.links[uuid].is_said:
                return uuid
            uuid = self.links[uuid].parent
        return ""
