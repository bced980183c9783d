"""A message while it arrives: shown to followers, and appended when it is complete."""

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
"""A writer that was silent for this long counts as dead."""
_L = TypeVar("_L", bound="Live")


class Live:
    """A stream that others see while it arrives: `with s.live(anthropic.Stream()) as live`.

    Feed it the events, and append the message: `s.append(live.finish())`. The stream is the `Stream` of a dialect, or
    anything with `feed` and a `finish` that can be called at any time. No call here waits for a disk, a server or a
    reader, so no `await` is needed. The shown text is not stored; only the entry is. If the block ends without one,
    followers get a notice to remove the text.
    """

    def __init__(self, log: Log, stream: Feed) -> None:
        self.id = new_id()
        """The id of the message, in its deltas and in the log."""
        self._stream = stream
        self._mutex = threading.Lock()
        self._texts: Texts | None = []
        channel = ability(log, CarryLiveText)
        self._stop = None if channel is None else channel.publish(LiveText(self.id, self._texts_now))

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
            self._texts = None

    def finish(self) -> Message:
        """The message so far, as the draft that `append` takes."""
        with self._mutex:
            return replace(self._stream.finish(), id=self.id)

    def close(self) -> None:
        """End the stream; nothing more comes. `with` calls it."""
        if self._stop is not None:
            self._stop()

    def _texts_now(self) -> Texts:
        with self._mutex:
            if self._texts is None:
                self._texts = texts_of(self._stream.finish())
            return self._texts


class Listening:
    """What one follower is shown besides entries: the deltas of messages whose entry it has not seen."""

    def __init__(self, log: Log, *, deltas: bool) -> None:
        channel = ability(log, CarryLiveText) if deltas else None
        self._inbox: Inbox | None = None if channel is None else channel.open_inbox()
        self._last_delta_at: dict[str, float] = {}
        self._seen: deque[str] = deque(maxlen=256)
        self._waiting: list[Delta] = []

    def take(self) -> None:
        """Collect new deltas. Call it before reading the log: then the entry of every ended message is read, too."""
        if self._inbox is not None:
            self._waiting += self._inbox.take()

    @property
    def has_ended(self) -> bool:
        """Whether a message has ended, so that its entry may have come since the log was read."""
        return any(delta.is_over for delta in self._waiting)

    def saw(self, entry: AnyEntry) -> None:
        """Record an entry that the follower received."""
        if self._inbox is not None and isinstance(entry, Message):
            self._seen.append(entry.id)
            self._last_delta_at.pop(entry.id, None)

    def deltas(self) -> list[Delta]:
        """The deltas for the follower, after the entries."""
        now, deltas = time.monotonic(), list[Delta]()
        waiting, self._waiting = self._waiting, []
        for delta in waiting:
            if delta.id in self._seen:
                continue
            if delta.is_over:
                if self._last_delta_at.pop(delta.id, None) is not None:
                    deltas.append(delta)
                continue
            if delta.text:
                deltas.append(delta)
            if delta.text or delta.id in self._last_delta_at:
                self._last_delta_at[delta.id] = now
        for id in [id for id, at in self._last_delta_at.items() if now - at > SILENT_S]:
            del self._last_delta_at[id]
            self._seen.append(id)  # if the writer wakes up, the beginning is gone: only its entry will be shown
            deltas.append(Delta(id, is_over=True))
        return deltas

    def close(self) -> None:
        """Stop listening."""
        inbox, self._inbox = self._inbox, None
        if inbox is not None:
            inbox.close()
