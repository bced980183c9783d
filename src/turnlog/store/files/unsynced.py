"""Writes between `write` and `sync`: which are on the disk, which are waiting, which may be lost."""

from __future__ import annotations

from msgspec import Struct


class UnsyncedWrite(Struct, frozen=True):
    """Bytes that we wrote, and what is in them."""

    start: int
    end: int
    seqs: dict[str, int]
    """The numbers of the entries in them, by their ids."""
    last: int
    """The last of those numbers."""


class Unsynced:
    """The writes of one log that are not synced yet."""

    def __init__(self) -> None:
        self.synced = 0
        """Entries up to this `seq` are on the disk."""
        self.failed: set[int] = set()
        """Entries whose sync failed: never acknowledged, whatever a later sync says."""
        self.last_failed = 0
        """The last of them: a number that a reader may have seen is not given out again."""
        self.unsure: list[UnsyncedWrite] = []
        """Writes whose sync failed: they may be on the disk, and may be lost."""
        self.waiting: list[UnsyncedWrite] = []
        """Writes, the newest of which may only be about to be done, that wait for their sync."""

    def done(self, last: int) -> None:
        """Everything up to that entry is on the disk."""
        self.synced = max(self.synced, last)
        if self.waiting and self.waiting[-1].last <= last:
            self.waiting.clear()
        else:
            self.waiting = [write for write in self.waiting if write.last > last]

    def fail(self) -> dict[str, int]:
        """A sync failed: nothing that waits is ever acknowledged. Returns the entries in doubt."""
        doubted: dict[str, int] = {}
        for write in self.waiting:
            doubted.update(write.seqs)
            self.last_failed = max(self.last_failed, write.last)
        self.failed.update(doubted.values())
        self.unsure += self.waiting
        self.synced, self.waiting = 0, []
        return doubted

    def newest_unsure(self, size: int) -> UnsyncedWrite | None:
        """The newest write in doubt, if nothing was written after it: it can be cut back."""
        if self.unsure and self.unsure[-1].end == size:
            return self.unsure[-1]
        self.unsure = []  # what others have written after stays; writing it again says `again`
        return None

    def replaced(self) -> None:
        """Another file took the place of the one we wrote to: what is on the disk of it is not known."""
        self.synced, self.waiting, self.unsure = 0, [], []
