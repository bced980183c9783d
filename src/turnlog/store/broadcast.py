"""What is being said right now, on its way to those who listen. Every store has its own way to carry it; none keeps it.

Whoever speaks only notes what there is to say. A thread of the store looks at that, finds out who listens, and brings
each of them what he lacks. So whoever comes late gets all of it, and whoever is slow slows nobody.
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
"""Between two looks of who brings something."""
BEAT_S = 1.0
"""So often whoever speaks is heard of, though it says nothing."""
_OVERHEAD, _WIDEST = 160, 6
"""What a frame takes besides its text, and a character at most."""
Said = list[tuple[Literal["text", "thinking"], str]]
"""What each block of a message says in words, in their order; a block without words says nothing."""


class Delta(msgspec.Struct, frozen=True, omit_defaults=True):
    """More of a message on its way, for whoever follows with `deltas=True`. It is in no log.

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


def said_in(message: Message) -> Said:
    """The words of a message, block by block."""
    return [
        ("thinking", block.text) if isinstance(block, Thinking) else ("text", block.text if type(block) is Text else "")
        for block in message.blocks
    ]


_encode = msgspec.json.Encoder().encode


class LiveText:
    """What one message says so far, and how much of it each listener has been told. Used by one thread at a time."""

    def __init__(self, id: str, said: Callable[[], Said]) -> None:
        self.id = id
        self._look = said
        self._said: Said = []
        self._told: dict[str, dict[int, int]] = {}
        self._heard_s: dict[str, float] = {}
        self.is_over = False
        """Set by who speaks: nothing more comes."""

    def look(self) -> None:
        """Take in what there is to say by now."""
        before = self._said
        try:
            self._said = [(kind, _sendable(text)) for kind, text in self._look()]
        except Exception as error:  # whose stream it is, is told when the message is made; nobody waits for that here
            import logging  # hardly anybody gets here

            logging.getLogger("turnlog").warning("message %s cannot be shown while it arrives: %r", self.id, error)
            self.is_over = True
        for block, (_, text) in enumerate(before):
            if len(self._said) <= block or not self._said[block][1].startswith(text):
                for told in self._told.values():
                    told.pop(block, None)

    def due(self, listener: str, most_bytes: int) -> Iterator[bytes]:
        """Frames of at most so many bytes that this listener lacks. One counts as told when the next is asked for."""
        told, size = self._told.setdefault(listener, {}), (most_bytes - _OVERHEAD) // _WIDEST
        is_silent = True
        for block, (kind, text) in enumerate(self._said):
            while (at := told.get(block, 0)) < len(text):
                piece = text[at : at + size]
                yield _encode(Delta(self.id, piece, kind, block, at))
                told[block], is_silent = at + len(piece), False
        if self.is_over:
            yield _encode(Delta(self.id, is_over=True))
        now = time.monotonic()
        if is_silent and now - self._heard_s.get(listener, 0.0) > BEAT_S:
            yield _encode(Delta(self.id))
            is_silent = False
        if not is_silent:
            self._heard_s[listener] = now

    def forget(self) -> None:
        """Nobody knows what arrived: whoever listens is told from the beginning."""
        self._told.clear()


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
