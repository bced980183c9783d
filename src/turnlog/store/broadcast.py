"""Live text on its way to listeners. Every store has its own way to carry it; none keeps it.

A speaker only notes its text. A thread of the store reads that, finds the listeners, and sends each what it lacks. So a
late listener gets all of it, and a slow one slows no other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import ClassVar, Literal

import msgspec

from turnlog.log.block import Text, Thinking
from turnlog.log.codec import without_surrogates
from turnlog.log.entry import Message

PAUSE_S = 0.05
"""Between two rounds of the sending thread."""
BEAT_S = 1.0
"""The heartbeat of a silent speaker."""
_OVERHEAD, _WIDEST = 160, 6
"""What a frame takes besides its text, and a character at most."""
Texts = list[tuple[Literal["text", "thinking"], str]]
"""What each block of a message says in words, in their order; a block without words says nothing."""


class Delta(msgspec.Struct, frozen=True, omit_defaults=True):
    """More of a message on its way, for followers with `deltas=True`. It is in no log.

    The deltas of a block come in order and without gaps: the text so far is `before[:at] + text`. The message itself
    comes as an entry with the same `id`, and then counts instead.
    """

    type: ClassVar[str] = "delta"
    """As of an entry, to tell one from the other."""
    id: str
    """The id that the message will have."""
    text: str = ""
    kind: Literal["text", "thinking"] = "text"
    block: int = 0
    """Which of the message's blocks it belongs to, as far as they are there."""
    at: int = 0
    """How many characters of the block come before it; at 0 the block begins, maybe anew."""
    is_over: bool = False
    """Nothing more comes and no entry did: the writer gave up or died, and what was shown is to be taken away."""

    def to_json(self) -> str:
        """As one line of JSON, beginning with its `type` as that of an entry does."""
        return msgspec.json.encode({"type": self.type, **msgspec.to_builtins(self)}).decode()


def texts_of(message: Message) -> Texts:
    """The words of a message, block by block."""
    return [
        ("thinking", block.text) if isinstance(block, Thinking) else ("text", block.text if type(block) is Text else "")
        for block in message.blocks
    ]


_encode = msgspec.json.Encoder().encode


class LiveText:
    """What one message says so far, and how much of it each listener was sent. Used by one thread at a time."""

    def __init__(self, id: str, read: Callable[[], Texts]) -> None:
        self.id = id
        self._read = read
        self._texts: Texts = []
        self._sent: dict[str, dict[int, int]] = {}
        self._beat_at: dict[str, float] = {}
        self.is_over = False
        """Set by the speaker: nothing more comes."""

    def refresh(self) -> None:
        """Read the text as it is by now."""
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
        """Frames of at most `most_bytes` that this listener lacks. One counts as sent when the next is asked for."""
        sent, size = self._sent.setdefault(listener, {}), (most_bytes - _OVERHEAD) // _WIDEST
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
        """It is not known what arrived: every listener is sent all of it again."""
        self._sent.clear()


def _sendable(text: str) -> str:
    """The text with half a character replaced: a stream may be cut there, and nothing else can be sent of it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return without_surrogates(text)
    return text


def delta_of(frame: bytes) -> Delta | None:
    """A frame as a delta; None if it is none."""
    try:
        return msgspec.json.decode(frame, type=Delta)
    except msgspec.DecodeError:
        return None
