"""The state of writes that need a sync: on the disk, waiting, or maybe lost."""

from __future__ import annotations

from msgspec import Struct


class UnsyncedWrite(Struct, frozen=True):
    """Bytes that we wrote, and the entries in them."""

    start: int
    end: int
    seqs: dict[str, int]
    """The numbers of the entries, by id."""
    last: int
    """The `seq` of the last entry."""


class Unsynced:
    """The writes of one log that are not synced yet."""

    def __init__(self) -> None:
        self.synced = 0
        """Entries up to this `seq` are on the disk."""
        self.failed: set[int] = set()
        """Entries whose sync failed: never acknowledged, whatever a later sync says."""
        self.last_failed = 0
        """The last of the failed entries: a number that a reader may have seen is not used again."""
        self.unsure: list[UnsyncedWrite] = []
        """Writes whose sync failed: they may be on the disk, or lost."""
        self.waiting: list[UnsyncedWrite] = []
        """Writes that wait for their sync; the newest may be still in progress."""

    def done(self, last: int) -> None:
        """Record that everything up to that entry is on the disk."""
        self.synced = max(self.synced, last)
        if self.waiting and self.waiting[-1].last <= last:
            self.waiting.clear()
        else:
            self.waiting = [write for write in self.waiting if write.last > last]

    def fail(self) -> dict[str, int]:
        """Record a failed sync: no waiting entry is ever acknowledged. Returns the entries in doubt."""
        doubted: dict[str, int] = {}
        for write in self.waiting:
            doubted.update(write.seqs)
            self.last_failed = max(self.last_failed, write.last)
        self.failed.update(doubted.values())
        self.unsure += self.waiting
        self.synced, self.waiting = 0, []
        return doubted

    def newest_unsure(self, size: int) -> UnsyncedWrite | None:
        """Return the newest write in doubt if nothing was written after it, so that it can be truncated."""
        if self.unsure and self.unsure[-1].end == size:
            return self.unsure[-1]
        self.unsure = []  # a write with lines of others after it stays; a repeat of it gets `again`
        return None

    def replaced(self) -> None:
        """Record that another file replaced ours: it is unknown how much of it is on the disk."""
        self.synced, self.waiting, self.unsure = 0, [], []
