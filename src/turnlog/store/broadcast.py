"""Live text for listeners. Every store has its own way to transmit it; none stores it.

A speaker only registers its text. A thread of the store reads the text, finds the listeners, and sends each the part
that it lacks. So a late listener gets the whole text, and a slow one does not slow down others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import ClassVar, Literal

import msgspec

from turnlog.log.block import Text, Thinking
from turnlog.log.codec import BAD_JSON, without_surrogates
from turnlog.log.entry import Message

PAUSE_S = 0.05
"""The pause between two rounds of the sending thread."""
BEAT_S = 1.0
"""The interval of heartbeats of a silent speaker."""
_OVERHEAD, _WIDEST = 160, 6
"""The bytes of a frame besides its text and its id, and the most bytes per character."""
_LEAST = 64
"""The least characters per frame, however long the id is: a frame may then be longer than wanted."""
Texts = list[tuple[Literal["text", "thinking"], str]]
"""The text of each block of a message, in order; "" for a block without text."""


class Delta(msgspec.Struct, frozen=True, omit_defaults=True):
    """More text of a message that is still arriving, for followers with `deltas=True`. It is in no log.

    The deltas of a block arrive in order and without gaps: the text so far is `before[:at] + text`. The message itself
    arrives as an entry with the same `id`, which then replaces the deltas.
    """

    type: ClassVar[str] = "delta"
    """The type, as an entry has one, to tell deltas from entries."""
    id: str
    """The id that the message will have."""
    text: str = ""
    kind: Literal["text", "thinking"] = "text"
    block: int = 0
    """The index of the message's block, among those that have arrived."""
    at: int = 0
    """The number of characters of the block before this text; 0 begins the block, or begins it again."""
    is_over: bool = False
    """The writer gave up or died: no entry follows, and the text that was shown must be removed."""

    def to_json(self) -> str:
        """Return the delta as one line of JSON, with its `type` first, as in an entry."""
        return msgspec.json.encode({"type": self.type, **msgspec.to_builtins(self)}).decode()


def texts_of(message: Message) -> Texts:
    """Return the text of a message, block by block."""
    return [
        ("thinking", block.text) if isinstance(block, Thinking) else ("text", block.text if type(block) is Text else "")
        for block in message.blocks
    ]


_encode = msgspec.json.Encoder().encode


class LiveText:
    """The text of one message so far, and how much of it was sent to each listener. Used by one thread at a time."""

    def __init__(self, id: str, read: Callable[[], Texts]) -> None:
        self.id = id
        self._overhead = _OVERHEAD + len(_encode(id))
        self._read = read
        self._texts: Texts = []
        self._sent: dict[str, dict[int, int]] = {}
        self._beat_at: dict[str, float] = {}
        self.is_over = False
        """Set by the speaker when no more text follows."""

    def refresh(self) -> None:
        """Read the current text."""
        before = self._texts
        try:
            self._texts = [(kind, _sendable(text)) for kind, text in self._read()]
        except Exception as error:  # the caller sees the error from `finish()`
            import logging  # hardly ever needed

            logging.getLogger("turnlog").warning("message %s cannot be shown while it arrives: %r", self.id, error)
            self.is_over = True
        for block, (_, text) in enumerate(before):
            if len(self._texts) <= block or not self._texts[block][1].startswith(text):
                for sent in self._sent.values():
                    sent.pop(block, None)

    def frames_for(self, listener: str, most_bytes: int) -> Iterator[bytes]:
        """Yield frames of at most `most_bytes` that a listener lacks; each counts as sent when the next is taken."""
        sent, size = self._sent.setdefault(listener, {}), max(_LEAST, (most_bytes - self._overhead) // _WIDEST)
        is_silent = True
        for block, (kind, text) in enumerate(self._texts):
            while (at := sent.get(block, 0)) < len(text):
                piece = text[at : at + size]
                yield _encode(Delta(self.id, piece, kind, block, at))
                sent[block], is_silent = at + len(piece), False
        if self.is_over:
            yield _encode(Delta(self.id, is_over=True))
        now = time.monotonic()
        if is_silent and now - self._beat_at.get(listener, 0.0) > BEAT_S:
            yield _encode(Delta(self.id))
            is_silent = False
        if not is_silent:
            self._beat_at[listener] = now

    def reset(self) -> None:
        """Send the whole text to every listener again, because it is unknown what arrived."""
        self._sent.clear()


def _sendable(text: str) -> str:
    """Return the text with lone surrogates replaced: a stream may be cut inside a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return without_surrogates(text)
    return text


def delta_of(frame: bytes) -> Delta | None:
    """Decode a frame as a delta; None if it is not a delta."""
    try:
        return msgspec.json.decode(frame, type=Delta)
    except BAD_JSON:
        return None
