"""The log of one session as a list."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from turnlog.log.codec import Damage, Flawed, decode
from turnlog.log.draft import Draft, stamp_drafts, to_ms
from turnlog.log.entry import AnyEntry, is_fence
from turnlog.log.erasure.content import Erasure
from turnlog.log.ids import word
from turnlog.log.written import WrittenLine, bare, entries_of, entry_of
from turnlog.store import Clock, in_order
from turnlog.store.refusal import came_after, ends_elsewhere, entry_id_taken, session_gone

if TYPE_CHECKING:
    from turnlog.store.broadcast import Delta, LiveText


class MemoryLog:
    """See `Log`."""

    def __init__(self, session_id: str, clock: Clock, seq: int) -> None:
        self.id = session_id
        self.entries: list[AnyEntry] = []
        self._by_id: dict[str, AnyEntry] = {}
        self.is_gone = False
        self._lines: dict[int, bytes] = {}
        self._flaws: dict[int, str] = {}
        """The kind of damage of adopted lines, by `seq`."""
        self._clock = clock
        self._version = 0
        self._first = seq
        self._mutex = threading.RLock()
        self._live: list[LiveText] = []
        self._inboxes: list[MemoryInbox] = []

    @property
    def first(self) -> str:
        """The id of the first entry."""
        return self.entries[0].id if self.entries else self.id

    def append(
        self, drafts: list[Draft], *, after: int, head: int, once: bool = False, alone: bool = False
    ) -> list[AnyEntry]:
        with self._mutex:
            if self.is_gone:
                raise session_gone(self.id)
            present = {draft.id: self._by_id[draft.id] for draft in drafts if draft.id in self._by_id}
            if present and once:
                raise entry_id_taken(self.id, next(iter(present)))
            rest = [draft for draft in drafts if draft.id not in present]
            fenced = any(draft.is_fence for draft in rest)
            for entry in self._between(after, None) if rest else ():
                if alone or (fenced and is_fence(entry)):
                    raise came_after(after, entry)
            new = self._stamp(rest, head)
            self._add(new)
            return in_order(drafts, present, new)

    def _add(self, entries: list[AnyEntry]) -> None:
        self.entries.extend(entries)
        for entry in entries:
            self._by_id.setdefault(entry.id, entry)

    def _between(self, after: int, before: int | None) -> list[AnyEntry]:
        first = bisect_right(self.entries, after, key=_seq)
        return self.entries[first : None if before is None else bisect_left(self.entries, before, key=_seq)]

    def _stamp(self, drafts: list[Draft], head: int) -> list[AnyEntry]:
        last = self.entries[-1] if self.entries else None
        seq = last.seq if last is not None else self._first - 1
        at = to_ms(last.at) if last is not None and last.at is not None else 0
        stamped = stamp_drafts(drafts, floor=seq, at=at, now=self._clock(), head=head)
        sealed = [one.draft.sealed(one.stamps) for one in stamped]
        self._lines.update((entry.seq, line[:-1]) for line, entry in sealed)
        return [entry for _, entry in sealed]

    def adopt(self, lines: list[bytes], *, after: int) -> None:
        adopted = entries_of(lines, after=after)
        with self._mutex:
            last = self.entries[-1].seq if self.entries else 0
            if last != after:
                raise ends_elsewhere(self.id, last, after)
            for line, item in zip(lines, adopted, strict=True):
                entry = entry_of(item)
                self._add([entry])
                self._lines[entry.seq] = bare(line)
                if isinstance(item, Flawed):
                    self._flaws[entry.seq] = item.kind

    def prefix(self, seq: int) -> MemoryLog:
        """Return the log up to that entry, with the rest of its batch: forks need it when the log is purged."""
        kept = MemoryLog(self.id, self._clock, 1)
        last = self._between(0, seq + 1)[-1]
        kept._add(self._between(0, last.seq + last.more + 1))
        kept._lines = {entry.seq: self._lines[entry.seq] for entry in kept.entries}
        kept._flaws = {at: flaw for at, flaw in self._flaws.items() if at in kept._lines}
        kept.is_gone = True
        return kept

    def erase(self, erasures: list[Erasure]) -> None:
        """See `EraseEntries.erase`."""
        with self._mutex:
            from turnlog.log.erasure.line import Eraser

            eraser = Eraser(erasures)
            for index, entry in enumerate(self.entries):
                if not eraser.concerns(entry):
                    continue
                line = eraser.erased(self._lines[entry.seq], entry)
                if line == self._lines[entry.seq]:
                    continue
                left = entry_of(decode(line))
                self._lines[entry.seq], self.entries[index] = line, left
                self._flaws.pop(entry.seq, None)
                if self._by_id.get(entry.id) is entry:
                    self._by_id[entry.id] = left
            self._version += 1

    def version(self) -> object:
        return self._version

    def sync(self, seq: int) -> None:
        """See `Log.sync`."""

    def read(self, *, after: int = 0, before: int | None = None, reverse: bool = False) -> Iterator[AnyEntry | Damage]:
        with self._mutex:
            entries = self._between(after, before)
        for entry in reversed(entries) if reverse else entries:
            if entry.seq in self._flaws:
                yield Damage(entry.seq, len(self._lines[entry.seq]), self._flaws[entry.seq], entry.seq)
            yield entry

    def lines(self, *, after: int = 0) -> Iterator[WrittenLine | Damage]:
        for item in self.read(after=after):
            yield item if isinstance(item, Damage) else WrittenLine(item, bare(self._lines[item.seq]))

    def find(self, entry_id: str) -> AnyEntry | None:
        with self._mutex:
            return self._by_id.get(entry_id)

    def stamp(self) -> object:
        with self._mutex:
            return len(self.entries), self.entries[-1].id if self.entries else "", self._version

    def wait(self, seq: int, *, seconds: float = 0) -> bool:
        """See `Log.wait`. There are no notifications."""
        if seconds:
            time.sleep(seconds)
        with self._mutex:
            return bool(self.entries) and self.entries[-1].seq != seq

    def publish(self, text: LiveText) -> Callable[[], None]:
        """See `CarryLiveText`. Nothing is sent: listeners are in this process, and read the text themselves."""
        with self._mutex:
            self._live.append(text)

        def stop() -> None:
            with self._mutex:
                if text in self._live:
                    self._live.remove(text)
                    for inbox in self._inboxes:
                        inbox.ended.append(text.id)

        return stop

    def open_inbox(self) -> MemoryInbox:
        inbox = MemoryInbox(self._take_for, self._leave)
        with self._mutex:
            self._inboxes.append(inbox)
        return inbox

    def _leave(self, inbox: MemoryInbox) -> None:
        with self._mutex:
            if inbox in self._inboxes:
                self._inboxes.remove(inbox)

    def _take_for(self, inbox: MemoryInbox) -> list[Delta]:
        from turnlog.store.broadcast import Delta, delta_of  # the session of a viewer has no listeners

        with self._mutex:
            for text in self._live:
                text.refresh()
            ended, inbox.ended = inbox.ended, []
            frames = [frame for text in self._live for frame in text.frames_for(inbox.name, 1 << 16)]
        return [delta for frame in frames if (delta := delta_of(frame))] + [Delta(id, is_over=True) for id in ended]

    def close(self) -> None:
        """See `Log.close`."""


class MemoryInbox:
    """See `Inbox`."""

    def __init__(self, take: Callable[[MemoryInbox], list[Delta]], leave: Callable[[MemoryInbox], None]) -> None:
        self.name = word(16)
        self.ended: list[str] = []
        """The ids of messages whose live text has ended."""
        self._take = take
        self._leave = leave

    def take(self) -> list[Delta]:
        return self._take(self)

    def close(self) -> None:
        self._leave(self)


def _seq(entry: AnyEntry) -> int:
    return entry.seq
