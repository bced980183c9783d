"""A session as most writers need it: what was said before a compaction, what stands in its place, and what goes on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import takewhile
from uuid import UUID, uuid5

from msgspec import Struct

from turnlog.formats import Transcript
from turnlog.formats._shared.key import UUIDS
from turnlog.log.block import Text, ToolResult
from turnlog.log.context import split_system, spoken, visible
from turnlog.log.context.toolturn import repair
from turnlog.log.digest import sha256
from turnlog.log.entry import AnyEntry, Compaction, Custom, Message, Uncompact

_SPACE = UUID("8a3a4f5e-5f0c-4b5e-9c57-0d6b1f0f7a11")
"""Under which ids that an agent wants as UUIDs are made from ids of ours."""


class View(Struct, frozen=True):
    """A conversation in the parts that a compaction makes of it. Every call has its result."""

    hidden: list[Message]
    """What was said before, and no model sees any more."""
    summary_messages: list[Message]
    """What stands in its place, as far as that is only text."""
    other_replacement: list[Message]
    """What else stands in its place."""
    kept: list[Message]
    """What was said before, and a model still sees: as edits leave it, like all that follows."""
    messages: list[Message]
    compaction: Compaction | None = None

    @property
    def summary(self) -> str:
        """The text that stands in the place of what is hidden."""
        return "\n\n".join(text_of(message) for message in self.summary_messages)


def view_of(transcript: Transcript) -> View:
    """The conversation as a model sees it, and what it no longer sees."""
    seen = transcript.context.messages
    compactions = compactions_on(transcript.path)
    if not compactions:
        return View([], [], [], [], list(seen))
    compaction = compactions[-1]
    index = transcript.path.index(compaction)
    later = {entry.seq for entry in transcript.path[index + 1 :]}
    earlier = {entry.seq for entry in transcript.path[:index] if compaction.keep and entry.seq >= compaction.keep}
    _, spoken_before = split_system(spoken_on(entry for entry in transcript.path[:index] if entry.seq not in earlier))
    begin = next((i for i, message in enumerate(seen) if message.seq in earlier or message.seq in later), len(seen))
    middle = next((i for i, message in enumerate(seen) if message.seq in later), len(seen))
    plain = len(list(takewhile(_is_plain, seen[:begin])))
    return View(repair(spoken_before), seen[:plain], seen[plain:begin], seen[begin:middle], seen[middle:], compaction)


def spoken_on(path: Iterable[AnyEntry]) -> list[Message]:
    """Every entry on a path that says something, as it was said."""
    messages = (spoken(entry) for entry in path if isinstance(entry, (Message, Custom)))
    return [message for message in messages if message is not None]


def _is_plain(message: Message) -> bool:
    return message.role in ("user", "system") and all(isinstance(block, Text) for block in message.blocks)


def seen_on(path: list[AnyEntry]) -> list[Message]:
    """What a model sees at the end of a path, as it is and not repaired."""
    replaced, kept = visible(reversed(path), {entry.seq: entry for entry in path}.get)
    return replaced + kept


def compactions_on(path: list[AnyEntry]) -> list[Compaction]:
    """The compactions on a path that were not taken back; the last is the one that counts."""
    gone = {entry.compaction for entry in path if isinstance(entry, Uncompact)}
    return [entry for entry in path if isinstance(entry, Compaction) and entry.seq not in gone]


def text_of(message: Message) -> str:
    """All that is text in a message."""
    return "\n\n".join(block.text for block in message.blocks if isinstance(block, Text))


def as_uuid(*names: str) -> str:
    """A UUID that is one already, or one that always is the same for those names."""
    if len(names) == 1 and re.fullmatch(UUIDS, names[0]):
        return names[0].lower()
    return str(uuid5(_SPACE, "\n".join(names)))


def short_id(*names: str, length: int = 8) -> str:
    """So many hexadecimal digits, always the same for those names."""
    return sha256("\n".join(names).encode("utf-8", "surrogatepass")).hexdigest()[:length]


def unused(id: str, taken: set[str], kind: str) -> str:
    """That id, or one made from it where it is taken; it is taken from now on."""
    while id in taken:
        id = f"{kind}_{short_id(id, 'again', length=24)}"
    taken.add(id)
    return id


def answered(messages: list[Message]) -> Iterator[tuple[Message, list[tuple[ToolResult, datetime | None]]]]:
    """Every message but those of tools, with the results right behind it, and when each was there."""
    for index, message in enumerate(messages):
        if message.role != "tool":
            behind = takewhile(lambda other: other.role == "tool", messages[index + 1 :])
            blocks = ((block, when(other)) for other in behind for block in other.blocks)
            yield message, [(block, at) for block, at in blocks if isinstance(block, ToolResult)]


def iso(at: datetime | None, otherwise: datetime) -> str:
    """A time to the millisecond, as JavaScript programs write it."""
    moment = (at or otherwise).astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def provider_of(model: str | None) -> str:
    """Whose a model is, as far as its name tells."""
    name = (model or "").lower()
    names = (("claude", "anthropic"), ("gpt", "openai"), ("o3", "openai"), ("gemini", "google"))
    return next((provider for start, provider in names if start in name), "unknown")


def when(entry: AnyEntry) -> datetime | None:
    """When an entry really happened."""
    return entry.clock or entry.at
