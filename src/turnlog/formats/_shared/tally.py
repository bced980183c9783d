"""What another format cannot say, counted while it is written; and what stands in its place."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any

from turnlog.errors import NotFound
from turnlog.formats import Loss, Transcript
from turnlog.formats._shared.origin import is_of
from turnlog.interop.rust import beyond_64_bits, by_key
from turnlog.interop.value import as_list, fields
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.context.toolturn import repair
from turnlog.log.entry import Checkpoint, Message, Note


class Tally:
    """Each kind of loss once, in the order met, with how often. `get_blob` fetches pictures from the log."""

    def __init__(self, get_blob: Callable[[str], bytes] | None = None) -> None:
        self._get_blob = get_blob
        self._found: dict[str, Loss] = {}

    def add(self, what: str, instead: str = "", count: int = 1) -> None:
        """One more loss of that kind, or several."""
        if count:
            before = self._found.get(what)
            self._found[what] = Loss(what, (before.count if before else 0) + count, instead)

    def losses(self) -> list[Loss]:
        """All of them."""
        return list(self._found.values())

    def data(self, block: Image | File) -> bytes | None:
        """The bytes of a picture or a file, where they are to be had."""
        if block.data is not None or block.blob is None or self._get_blob is None:
            return block.data
        try:
            return self._get_blob(block.blob)
        except NotFound:
            return None

    def look_at_texts(self, blocks: Iterable[AnyBlock]) -> None:
        """Count that several texts became one."""
        self.add("separate texts", "one text", int(sum(isinstance(block, Text) for block in blocks) > 1))

    def said_in_words(self, block: AnyBlock, where: str = "") -> str:
        """A text in the place of a block that cannot be carried, which is counted."""
        if isinstance(block, (Image, File)):
            what = ("image" if isinstance(block, Image) else "file") + where
        else:
            what = "provider's tool call" if isinstance(block, ToolCall) else "unknown block"
        self.add(what, "a text that says so")
        return stand_in(block) or "[?]"

    def given(self, call: ToolCall) -> dict[str, Any]:
        """What a tool was given, as an object."""
        given: Any = call.input
        if isinstance(given, dict):
            return fields(given)
        self.add("tool input that is no object", 'an object with the key "input"')
        return {"input": given}

    def result(self, content: str | list[AnyBlock]) -> str:
        """A tool result as one text; what is not text in it is lost, and where one text ended."""
        if not isinstance(content, str):
            self.look_at_texts(content)
            self.add("media in a tool result", "a word for it", sum(not isinstance(block, Text) for block in content))
        return plain_text(content)

    def free(self, value: Any) -> Any:
        """Free JSON as Rust holds it, sorted by key; it has no integers of more than 64 bits."""
        self.add("integer beyond 64 bits", "the nearest float", beyond_64_bits(value))
        return by_key(value)


def stand_in(block: AnyBlock) -> str:
    """A text that says what was there."""
    if isinstance(block, (Image, File)):
        kind = "image" if isinstance(block, Image) else "file"
        size = f", {len(block.data)} bytes" if block.data is not None else ""
        return f"[{kind}: {block.name or block.url or block.media_type or 'unnamed'}{size}]"
    if isinstance(block, ToolCall):
        return f"[{block.name} was run by the provider]"
    if isinstance(block, ToolResult):
        return plain_text(block.content)
    if isinstance(block, UnknownBlock):
        return f"[{block.kind}]"
    return block.text


def plain_text(content: str | Iterable[AnyBlock]) -> str:
    """The text of a tool result, with a word for what is not text."""
    if isinstance(content, str):
        return content
    return "\n".join(block.text if isinstance(block, (Text, Thinking)) else stand_in(block) for block in content)


def is_import_note(note: Note) -> bool:
    """Whether a note only tells what was wrong with a source: nobody misses it where it came from."""
    data = as_list(note.data)
    return bool(data) and "what" in fields(data[0])


def unseen(
    transcript: Transcript, seen: Container[int], tally: Tally, is_lost: Callable[[Note], bool] = lambda note: True
) -> None:
    """Count what is not in a file of messages alone: those that no model sees, and what is no message."""
    nodes = {entry.seq for entry in transcript.path}
    for entry in transcript.entries():
        if isinstance(entry, Note) and is_lost(entry) and not is_import_note(entry):
            tally.add("note")
        elif isinstance(entry, Checkpoint):
            tally.add("checkpoint of files")
        elif isinstance(entry, Message) and entry.seq not in nodes:
            tally.add("message on another branch")
        elif isinstance(entry, Message) and entry.seq not in seen and entry.blocks:
            tally.add("message before the last compaction", "its summary")


def lost_facts(transcript: Transcript, carried: Iterable[str]) -> int:
    """How many facts a format does not carry, apart from what another agent's format only needs for itself."""
    kept, private = set(carried), f"{transcript.agent}."
    facts = transcript.facts.items()
    return sum(value is not None and key not in kept and not key.startswith(private) for key, value in facts)


def mended(messages: list[Message], agent: str, tally: Tally) -> list[Message]:
    """Every call with its result from where others went on; what the agent wrote itself before stays as it is."""
    index = next((i for i, message in enumerate(messages) if not is_of(message, agent)), len(messages))
    if index == len(messages):
        return messages
    # The calls of the last one before may be answered further on, or never.
    index = next((start for start in range(index - 1, -1, -1) if messages[start].role != "tool"), index)
    rest = repair(messages[index:])
    kept = {id(block) for message in rest for block in message.blocks}
    results = [block for message in messages[index:] for block in message.blocks if isinstance(block, ToolResult)]
    tally.add("tool result without its call", "", sum(id(block) not in kept for block in results))
    return messages[:index] + rest
