"""Times of a streamed response: when it began, the first token, how long it took."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from msgspec.structs import replace

from turnlog.log.context import Context
from turnlog.log.context.nativecompaction import note_answered_head
from turnlog.log.entry import Message
from turnlog.wire import Request


class Timing:
    """Measures one stream: create it with the stream and report every event."""

    def __init__(
        self, provider: str, request: Request | None, clock: Callable[[], float], context: Context | None = None
    ) -> None:
        self._provider, self._request, self._clock, self._context = provider, request, clock, context
        self._began = clock()
        self._first: float | None = None
        self._last: float | None = None

    @property
    def is_begun(self) -> bool:
        """Whether any event came."""
        return self._last is not None

    def note_event(self, *, is_token: bool) -> None:
        """One more event, and whether it has something of the answer in it."""
        self._last = self._clock()
        if is_token and self._first is None:
            self._first = self._last

    def with_times(self, message: Message) -> Message:
        """The message with what was seen, where the stream knows its request."""
        message = note_answered_head(message, None if self._context is None else self._context.head_id)
        if self._request is None:
            return message
        return replace(
            message,
            provider=self._provider,
            options=self._request.options,
            began_at=datetime.fromtimestamp(round(self._began, 3), UTC),
            first_token_ms=self._since(self._first),
            duration_ms=self._since(self._last),
        )

    def _since(self, at: float | None) -> int | None:
        return None if at is None else max(0, round((at - self._began) * 1000))


class TimedStream:
    """A streamed response whose times are measured."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing

    @property
    def is_begun(self) -> bool:
        """Whether any event came: before that there is nothing to append."""
        return self._timing.is_begun
