"""Which ids are in a log, without reading it when that can be avoided."""

from __future__ import annotations

from collections.abc import Callable

from turnlog.log.draft import Draft
from turnlog.log.ids import is_ours, new_id, process

_RECENT = 1 << 16


class KnownIds:
    """Ids of one log. Our own are remembered as we append; anybody else's need one look at the whole log."""

    def __init__(self) -> None:
        self._own: dict[str, int] = {}
        self._all: dict[str, int] | None = None
        self._forgotten = 0
        """Our ids with a counter up to this may have been appended and forgotten."""
        self.doubted: dict[str, int] = {}
        """Ids we wrote and could not sync, and their `seq`: they may be in the log, and may be lost."""
        self.vouched: frozenset[str] = frozenset()
        """Ids that are not in the log, unless something was appended that our caller does not know."""

    def saw(self, entry_id: str, seq: int) -> None:
        """That id is in the log: somebody wrote it."""
        if entry_id not in self.doubted:
            self.wrote({entry_id: seq})

    def wrote(self, seqs: dict[str, int]) -> None:
        """These ids are in the log."""
        if self.doubted:
            for entry_id in seqs:
                self.doubted.pop(entry_id, None)
        if self._all is not None:
            for entry_id, seq in seqs.items():
                self._all.setdefault(entry_id, seq)
            return
        self._own.update(seqs)  # others' ids do no harm here: they are looked up in the whole log anyway
        if len(self._own) > _RECENT:
            self._forget()

    def forget(self) -> None:
        """The log is looked at anew, at its end: others, and other objects of this process, may have appended."""
        self._all = None
        self._forgotten = _counter(new_id())

    def _forget(self) -> None:
        """Keep the newer half of our own."""
        for entry_id in list(self._own)[: _RECENT // 2]:
            del self._own[entry_id]
            if is_ours(entry_id):
                self._forgotten = max(self._forgotten, _counter(entry_id))

    def may_have(self, drafts: list[Draft], *, alone: bool) -> bool:
        """Whether any of these could be in the log; False is definite. `alone`: only if nothing else came since."""
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
        """These could not be synced: whoever appends them again gets them written again."""
        self.doubted.update(seqs)
        self.cut(seqs, doubted=True)

    def cut(self, seqs: dict[str, int], *, doubted: bool = False) -> None:
        """These are no longer in the log."""
        for entry_id in seqs:
            self._own.pop(entry_id, None)
            if self._all is not None:
                self._all.pop(entry_id, None)
            if not doubted:
                self.doubted.pop(entry_id, None)

    def seq_of(self, entry_id: str, look: Callable[[], dict[str, int]]) -> int:
        """The `seq` of the entry with that id, 0 if there is none. `look` reads all ids of the log."""
        if entry_id in self.doubted:
            return 0
        if self._all is None:
            if is_ours(entry_id):
                seq = self._own.get(entry_id, 0)
                if seq or not self._forgotten or _counter(entry_id) > self._forgotten:
                    return seq
            self._all = {key: seq for key, seq in look().items() if key not in self.doubted}
        return self._all.get(entry_id, 0)


def _counter(entry_id: str) -> int:
    """Of an id of ours, or of one that was made from it, such as `…-1f/2`; 0 where nobody can tell."""
    try:
        return int(entry_id.partition("/")[0].rpartition("-")[2], 16)
    except ValueError:
        return 0
