"""The losses of one export, counted while it is written, and the texts that stand in for lost blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from turnlog.errors import NotFound
from turnlog.formats import Loss, Transcript
from turnlog.formats._shared.origin import is_of
from turnlog.interop.rust import beyond_64_bits, by_key
from turnlog.interop.value import as_list, fields
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.context.toolturn import repair
from turnlog.log.entry import Message, Note


class Tally:
    """Each kind of loss once, in the order met, with how often. `get_blob` fetches pictures from the log."""

    def __init__(self, get_blob: Callable[[str], bytes] | None = None) -> None:
        self._get_blob = get_blob
        self._losses: dict[str, Loss] = {}

    def add(self, what: str, instead: str = "", count: int = 1) -> None:
        """One more loss of that kind, or several."""
        if count:
            before = self._losses.get(what)
            self._losses[what] = Loss(what, (before.count if before else 0) + count, instead)

    def losses(self) -> list[Loss]:
        """Every kind of loss."""
        return list(self._losses.values())

    def data(self, block: Image | File) -> bytes | None:
        """The bytes of a picture or a file; None if the log does not have them."""
        if block.data is not None or block.blob is None or self._get_blob is None:
            return block.data
        try:
            return self._get_blob(block.blob)
        except NotFound:
            return None

    def stand_in_for(self, block: AnyBlock, where: str = "") -> str:
        """A text for a block that cannot be carried; counts the loss."""
        if isinstance(block, (Image, File)):
            what = ("image" if isinstance(block, Image) else "file") + where
        else:
            what = "provider's tool call" if isinstance(block, ToolCall) else "unknown block"
        self.add(what, "a text that says so")
        return stand_in(block) or "[?]"

    def input_object(self, call: ToolCall) -> dict[str, Any]:
        """The input of a call as an object; counts a loss if it is none."""
        value: Any = call.input
        if isinstance(value, dict):
            return fields(value)
        self.add("tool input that is no object", 'an object with the key "input"')
        return {"input": value}

    def result(self, content: str | list[AnyBlock]) -> str:
        """A tool result as one text; counts what is lost: blocks that are no text, and where each text ended."""
        if not isinstance(content, str):
            self.add("separate texts", "one text", int(sum(isinstance(block, Text) for block in content) > 1))
            self.add("media in a tool result", "a word for it", sum(not isinstance(block, Text) for block in content))
        return plain_text(content)

    def as_rust_json(self, value: Any) -> Any:
        """JSON as Rust programs hold it: sorted by key. Counts integers of more than 64 bits, which become floats."""
        self.add("integer beyond 64 bits", "the nearest float", beyond_64_bits(value))
        return by_key(value)


def stand_in(block: AnyBlock) -> str:
    """A text that says which block stood there."""
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
    """The text of a tool result, with a stand-in for each block that is no text."""
    if isinstance(content, str):
        return content
    return "\n".join(block.text if isinstance(block, (Text, Thinking)) else stand_in(block) for block in content)


def is_import_note(note: Note) -> bool:
    """Whether a note only lists the problems of an import: such a note is no loss."""
    data = as_list(note.data)
    return bool(data) and "what" in fields(data[0])


def lost_facts(transcript: Transcript, carried: Iterable[str]) -> int:
    """How many facts a format does not carry. Facts that only concern the agent of the session do not count."""
    kept, private = set(carried), f"{transcript.agent}."
    facts = transcript.facts.items()
    return sum(value is not None and key not in kept and not key.startswith(private) for key, value in facts)


def with_repaired_results(messages: list[Message], agent: str, tally: Tally) -> list[Message]:
    """The messages, in which every call has its result from the first one on that the agent did not write itself."""
    index = next((i for i, message in enumerate(messages) if not is_of(message, agent)), len(messages))
    if index == len(messages):
        return messages
    # The calls of the last message before may be answered behind it, or never.
    index = next((start for start in range(index - 1, -1, -1) if messages[start].role != "tool"), index)
    rest = repair(messages[index:])
    kept = {id(block) for message in rest for block in message.blocks}
    results = [block for message in messages[index:] for block in message.blocks if isinstance(block, ToolResult)]
    tally.add("tool result without its call", "", sum(id(block) not in kept for block in results))
    return messages[:index] + rest
