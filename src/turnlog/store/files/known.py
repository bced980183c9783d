"""The ids in a log, without reading the log if that can be avoided."""

from __future__ import annotations

from collections.abc import Callable

from turnlog.log.draft import Draft
from turnlog.log.ids import is_ours, new_id, process

_RECENT = 1 << 16
"""The most ids of this process that are cached. Of more, the older half is dropped."""


class KnownIds:
    """Ids of one log. Ids of this process are cached on append; those of other writers need a scan of the log."""

    def __init__(self) -> None:
        self._own: dict[str, int] = {}
        self._all: dict[str, int] | None = None
        self._forgotten = 0
        """Ids of this process with a counter up to this may have been appended and dropped from the cache."""
        self.doubted: dict[str, int] = {}
        """Ids that we wrote and could not sync, with their `seq`: they may be in the log, or lost."""
        self.vouched: frozenset[str] = frozenset()
        """Ids that are not in the log, unless an entry was appended that our caller does not know."""

    def record_read(self, entry_id: str, seq: int) -> None:
        """Record an id that was read from the log."""
        if entry_id not in self.doubted:
            self.record_written({entry_id: seq})

    def record_written(self, seqs: dict[str, int]) -> None:
        """Record ids that we appended to the log."""
        if self.doubted:
            for entry_id in seqs:
                self.doubted.pop(entry_id, None)
        if self._all is not None:
            for entry_id, seq in seqs.items():
                self._all.setdefault(entry_id, seq)
            return
        self._own.update(seqs)  # ids of other writers do no harm here: they are looked up in the whole log anyway
        if len(self._own) > _RECENT:
            self._evict_older()

    def invalidate_scan(self) -> None:
        """Drop the cached scan: other writers, or other objects of this process, may have appended."""
        self._all = None
        # A new id, only for its counter: it is above those of all earlier ids.
        self._forgotten = _counter(new_id())

    def _evict_older(self) -> None:
        """Keep only the newer half of our own ids."""
        for entry_id in list(self._own)[: _RECENT // 2]:
            del self._own[entry_id]
            if is_ours(entry_id):
                self._forgotten = max(self._forgotten, _counter(entry_id))

    def may_have(self, drafts: list[Draft], *, alone: bool) -> bool:
        """Whether any of these drafts may be in the log; False is certain. `alone`: only if nothing else came since."""
        if self._all is not None:
            return True
        for draft in drafts:
            if draft.id in self._own:
                return True
            if alone and draft.id in self.vouched:
                continue
            if not draft.id.startswith(process.prefix):
                return True
            if self._forgotten and _counter(draft.id) <= self._forgotten:
                return True
        return False

    def doubt(self, seqs: dict[str, int]) -> None:
        """Record ids that could not be synced: if they are appended again, they are written again."""
        self.doubted.update(seqs)
        self.cut(seqs, doubted=True)

    def cut(self, seqs: dict[str, int], *, doubted: bool = False) -> None:
        """Record ids that are no longer in the log."""
        for entry_id in seqs:
            self._own.pop(entry_id, None)
            if self._all is not None:
                self._all.pop(entry_id, None)
            if not doubted:
                self.doubted.pop(entry_id, None)

    def seq_of(self, entry_id: str, read_ids: Callable[[], dict[str, int]]) -> int:
        """Return the `seq` of the entry with that id, 0 if there is none. `read_ids` reads all ids of the log."""
        if entry_id in self.doubted:
            return 0
        if self._all is None:
            if is_ours(entry_id):
                seq = self._own.get(entry_id, 0)
                if seq or not self._forgotten or _counter(entry_id) > self._forgotten:
                    return seq
            self._all = {key: seq for key, seq in read_ids().items() if key not in self.doubted}
        return self._all.get(entry_id, 0)


def _counter(entry_id: str) -> int:
    """Return the counter in an id of ours, or in one derived from it, such as `…-1f/2`; 0 if there is none."""
    try:
        return int(entry_id.partition("/")[0].rpartition("-")[2], 16)
    except ValueError:
        return 0
