"""A message while it is being made: shown to those who follow, and appended when it is whole."""

from __future__ import annotations

import threading
import time
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from turnlog.log.entry import AnyEntry, Message
from turnlog.log.ids import new_id
from turnlog.store import Log
from turnlog.store.broadcast import Delta, LiveText, Texts, texts_of
from turnlog.store.capability import CarryLiveText, Inbox, ability

if TYPE_CHECKING:
    from turnlog.wire import Feed

SILENT_S = 5.0
"""A writer that was silent for so long counts as dead."""
_L = TypeVar("_L", bound="Live")


class Live:
    """A stream that others see while it arrives: `with s.live(anthropic.Stream()) as live`.

    Feed it the events, and append what it finishes: `s.append(live.finish())`. The stream is the `Stream` of a dialect,
    or anything with `feed` and a `finish` that may be asked at any time. Nothing here waits for a disk, a server or a
    reader, so it needs no `await`. What is shown is kept nowhere: only the entry is. When the block ends without one,
    followers get a notice to remove the text they showed.
    """

    def __init__(self, log: Log, stream: Feed) -> None:
        self.id = new_id()
        """The id of the message, in its deltas and in the log."""
        self._stream = stream
        self._mutex = threading.Lock()
        self._said: Texts | None = []
        channel = ability(log, CarryLiveText)
        self._stop = None if channel is None else channel.speak(LiveText(self.id, self._look))

    def __enter__(self: _L) -> _L:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def feed(self, event: Any) -> None:
        """Take the next event; see the `Stream` of the dialect."""
        with self._mutex:
            self._stream.feed(event)
            self._said = None

    def finish(self) -> Message:
        """What arrived, as the draft that `append` takes."""
        with self._mutex:
            return replace(self._stream.finish(), id=self.id)

    def close(self) -> None:
        """Nothing more comes. `with` does it."""
        if self._stop is not None:
            self._stop()

    def _look(self) -> Texts:
        with self._mutex:
            if self._said is None:
                self._said = texts_of(self._stream.finish())
            return self._said


class Listening:
    """What one follower is shown besides entries: deltas, but of no message that it has seen."""

    def __init__(self, log: Log, *, deltas: bool) -> None:
        channel = ability(log, CarryLiveText) if deltas else None
        self._inbox: Inbox | None = None if channel is None else channel.hear()
        self._heard: dict[str, float] = {}
        self._seen: deque[str] = deque(maxlen=256)
        self._waiting: list[Delta] = []

    def take(self) -> None:
        """What came since. To be called before the log is read: then what is over and has an entry has been seen."""
        if self._inbox is not None:
            self._waiting += self._inbox.take()

    @property
    def has_ended(self) -> bool:
        """Whether something is over: then its entry may have come since the log was looked at."""
        return any(delta.is_over for delta in self._waiting)

    def saw(self, entry: AnyEntry) -> None:
        """An entry that the follower was given."""
        if self._inbox is not None and isinstance(entry, Message):
            self._seen.append(entry.id)
            self._heard.pop(entry.id, None)

    def deltas(self) -> list[Delta]:
        """What the follower is given now, after the entries."""
        now, deltas = time.monotonic(), list[Delta]()
        waiting, self._waiting = self._waiting, []
        for delta in waiting:
            if delta.id in self._seen:
                continue
            if delta.is_over:
                if self._heard.pop(delta.id, None) is not None:
                    deltas.append(delta)
                continue
            if delta.text:
                deltas.append(delta)
            if delta.text or delta.id in self._heard:
                self._heard[delta.id] = now
        for id in [id for id, at in self._heard.items() if now - at > SILENT_S]:
            del self._heard[id]
            self._seen.append(id)  # should it wake up, the beginning is gone: its entry will come
            deltas.append(Delta(id, is_over=True))
        return deltas

    def close(self) -> None:
        """Listen no more."""
        inbox, self._inbox = self._inbox, None
        if inbox is not None:
            inbox.close()
