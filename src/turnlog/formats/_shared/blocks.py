"""Blocks as other agents keep them: thoughts, pictures, results beside what was said; unknown ones, kept whole."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from turnlog.interop.base64 import from_base64, from_canonical_base64
from turnlog.interop.json import decoded, is_deep
from turnlog.interop.rust import compact
from turnlog.interop.value import fields, json_text, text
from turnlog.log.block import BLOCKS, AnyBlock, File, Image, Text, Thinking, ToolCall, UnknownBlock
from turnlog.log.entry import Message, Role, Stop

_INNER = "block"


def unknown(agent: str, raw: Any) -> UnknownBlock:
    """A block of another agent's that we have no word for, kept whole.

    Where it is called like one of ours, or is no object at all, it lies inside one that is called after the agent: the
    log would take it for one of ours. Of what is nested deeper than the log can hold, only its name is kept.
    """
    kind = fields(raw).get("type")
    if is_deep(raw):
        raw = {"type": kind, "left_out": "nested too deep"} if isinstance(kind, str) else "nested too deep"
    if not isinstance(kind, str) or kind in BLOCKS:
        raw = {"type": f"{agent}.{kind if isinstance(kind, str) else 'block'}", _INNER: raw}
        kind = str(raw["type"])
    return UnknownBlock(kind=kind, json=compact(raw).decode())


def linked(make: type[Image] | type[File], url: str) -> Image | File | None:
    """A picture or a file by its URL, or by its bytes if that holds them; None where those are no base64."""
    head, comma, content = url.partition(",")
    if not head.startswith("data:") or not comma:
        return make(url=url)
    data = from_base64(content)
    return make(media_type=head[5:].partition(";")[0] or None, data=data) if data is not None else None


def original(agent: str, block: UnknownBlock) -> Any:
    """The block of another agent's that was kept whole; None for what is none."""
    raw = decoded(block.json.encode())
    return fields(raw)[_INNER] if block.kind.startswith(f"{agent}.") and _INNER in fields(raw) else raw


def in_base64(source: Any) -> Image | None:
    """A picture as Anthropic's API has it; None where it would not come back as it is."""
    picture = fields(source)
    data, kind = picture.get("data"), picture.get("media_type")
    if picture.get("type") != "base64" or len(picture) != 3 or not isinstance(data, str) or not isinstance(kind, str):
        return None
    content = from_canonical_base64(data)
    return Image(media_type=kind, data=content) if content is not None else None


def thinking(words: str, signature: Any) -> Thinking:
    """What a model thought. Only Anthropic signs it so that others keep the signature."""
    data = {"signature": signature} if text(signature) else None
    return Thinking(text=words, provider="anthropic" if data else None, data=data)


def usual(part: dict[str, Any]) -> AnyBlock | None:
    """A text or a thought, as Anthropic's API has it and many agents keep it; None for anything else."""
    match part:
        case {"type": "text", "text": str(words)}:
            return Text(text=words)
        case {"type": "thinking", "thinking": str(words)}:
            return thinking(words, part.get("signature"))
        case {"type": "redacted_thinking" | "redactedThinking", "data": str(data)} if data:
            return Thinking(provider="anthropic", data={"redacted": data})
        case _:
            return None


def stop_of(blocks: Iterable[AnyBlock]) -> Stop:
    """Why an answer ended, where its source does not say."""
    return "tool_use" if any(isinstance(block, ToolCall) and block.by is None for block in blocks) else "end"


def worded(answer: Any) -> str:
    """What a tool answered, as text: objects are what the model sees as JSON."""
    return answer if isinstance(answer, str) else "" if answer is None else json_text(answer)


def results_apart(
    role: Role, results: list[AnyBlock], blocks: list[AnyBlock], at: datetime | None, **about: Any
) -> list[Message]:
    """What tools answered, and then what was said, where one record has both."""
    messages: list[Message] = []
    if results:
        messages.append(Message(role="tool", blocks=results, at=at, display=about.get("display")))
    if blocks or not results:
        stop = stop_of(blocks) if role == "assistant" else None
        messages.append(Message(role=role, blocks=blocks, at=at, stop=stop, **about))
    return messages
