"""Writes between `write` and `sync`: which are on the disk, which are waiting, which may be lost."""

from __future__ import annotations

Span = tuple[int, int, dict[str, int], int]
"""Bytes we wrote, from and to; the ids and numbers of the entries in them; the last of those numbers."""


class Unsynced:
    """The writes of one log that nobody has synced yet."""

    def __init__(self) -> None:
        self.synced = 0
        """Entries up to this `seq` are on the disk."""
        self.failed: set[int] = set()
        """Entries whose sync failed: never acknowledged, whatever a later sync says."""
        self.last_failed = 0
        """The last of them: a number that somebody may have seen is not given out again."""
        self.unsure: list[Span] = []
        """Writes whose sync failed: they may be on the disk, and may be lost."""
        self.waiting: list[Span] = []
        """Writes, the newest of which may only be about to be done, that wait for their sync."""

    def done(self, last: int) -> None:
        """Everything up to that entry is on the disk."""
        self.synced = max(self.synced, last)
        if self.waiting and self.waiting[-1][3] <= last:
            self.waiting.clear()
        else:
            self.waiting = [span for span in self.waiting if span[3] > last]

    def fail(self) -> dict[str, int]:
        """A sync failed: nothing that waits is ever acknowledged. Returns the entries in doubt."""
        doubted: dict[str, int] = {}
        for span in self.waiting:
            doubted.update(span[2])
            self.last_failed = max(self.last_failed, span[3])
        self.failed.update(doubted.values())
        self.unsure += self.waiting
        self.synced, self.waiting = 0, []
        return doubted

    def newest_unsure(self, size: int) -> Span | None:
        """The newest write in doubt, if nobody has written after it: it can be cut back."""
        if self.unsure and self.unsure[-1][1] == size:
            return self.unsure[-1]
        self.unsure = []  # what others have written after stays; writing it again says `again`
        return None

    def replaced(self) -> None:
        """Another file took the place of the one we wrote to: what is on the disk of it is not known."""
        self.synced, self.waiting, self.unsure = 0, [], []
