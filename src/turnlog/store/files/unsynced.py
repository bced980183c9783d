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
        self._waiting: list[Span] = []

    def wrote(self, span: Span) -> None:
        """One more write, about to be done, waits for its sync."""
        self._waiting.append(span)

    def cut(self) -> None:
        """The newest of them was taken back."""
        self._waiting.pop()

    def done(self, last: int) -> None:
        """Everything up to that entry is on the disk."""
        self.synced = max(self.synced, last)
        if self._waiting and self._waiting[-1][3] <= last:
            self._waiting.clear()
        else:
            self._waiting = [span for span in self._waiting if span[3] > last]

    def fail(self) -> dict[str, int]:
        """A sync failed: nothing that waits is ever acknowledged. Returns the entries in doubt."""
        doubted: dict[str, int] = {}
        for span in self._waiting:
            doubted.update(span[2])
            self.last_failed = max(self.last_failed, span[3])
        self.failed.update(doubted.values())
        self.unsure += self._waiting
        self.synced, self._waiting = 0, []
        return doubted

    def newest_unsure(self, size: int) -> Span | None:
        """The newest write in doubt, if nobody has written after it: it can be cut back."""
        if self.unsure and self.unsure[-1][1] == size:
            return self.unsure[-1]
        self.unsure = []  # what others have written after stays; writing it again says `again`
        return None

    def replaced(self) -> None:
        """Another file took the place of the one we wrote to: what is on the disk of it is not known."""
        self.synced, self._waiting, self.unsure = 0, [], []
