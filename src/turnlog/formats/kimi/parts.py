"""What both programs called Kimi write alike: parts of a message, calls, usage, and keys for records without any."""

from __future__ import annotations

import os
from collections import Counter
from datetime import datetime
from typing import Any, cast

import msgspec

from turnlog.formats._shared.blocks import linked, unknown, usual
from turnlog.interop.json import json_or_text
from turnlog.interop.value import fields, json_text, text, token_count
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.digest import sha256
from turnlog.log.entry import Message
from turnlog.log.usage import Usage

NAME = "kimi"
_MEDIA = {"image_url": "imageUrl", "audio_url": "audioUrl", "video_url": "videoUrl"}
_INPUTS = ("other", "Other"), ("cache_read", "CacheRead"), ("cache_creation", "CacheCreation")
"""Fresh input, read from a cache, and written to one: what the older program says behind `input_`, and the newer."""


def message_of(raw: dict[str, Any], names: dict[str, str], at: datetime | None, *, is_error: bool) -> Message | None:
    """A message of a conversation; None for one of an unknown role. `names` are those of the tools, by their calls."""
    role, blocks = raw.get("role"), blocks_of(raw.get("content"))
    if role == "user" or role == "system":
        is_aside = fields(raw.get("origin")).get("kind") in ("injection", "hook_result")
        return Message(role=role, blocks=blocks, at=at, display=False if is_aside else None)
    if role == "assistant":
        calls = calls_of(raw.get("tool_calls", raw.get("toolCalls")))
        names.update((call.id, call.name) for call in calls if isinstance(call, ToolCall))
        return Message(role="assistant", blocks=[*blocks, *calls], at=at)
    if role == "tool":
        content = output(raw.get("content"))
        if "toolCallId" in raw and len(blocks) == 1 and isinstance(blocks[0], Text):
            content = blocks[0].text  # the newer program has every text in a list
        return result_of(raw.get("tool_call_id", raw.get("toolCallId")), names, content, at, is_error=is_error)
    return None


def result_of(
    call: Any, names: dict[str, str], content: str | list[AnyBlock], at: datetime | None, *, is_error: bool
) -> Message:
    """What a tool answered to a call, as a message of its own."""
    call = str(call or "")
    result = ToolResult(call=call, name=names.get(call), content=content, is_error=is_error)
    return Message(role="tool", blocks=[result], at=at)


def blocks_of(content: Any) -> list[AnyBlock]:
    """Content is text, or a list of parts."""
    if isinstance(content, str):
        return [Text(text=content)] if content else []
    return [_block(part) for part in _listed(content)]


def _listed(value: Any) -> list[Any]:
    """A list; anything else as the only value of one."""
    return [] if value is None else cast("list[Any]", value) if isinstance(value, list) else [value]


def _block(raw: Any) -> AnyBlock:
    part = fields(raw)
    kind = part.get("type")
    if kind == "think":
        opaque = part.get("encrypted")
        thought = text(part.get("think")) or text(part.get("text")) or ""
        return Thinking(text=thought, provider=NAME, data={"encrypted": opaque} if opaque else None)
    if isinstance(kind, str) and kind in _MEDIA:
        # Some lie in the program's own store of blobs, and have a URL of it.
        url = text(fields(part.get(kind) or part.get(_MEDIA[kind])).get("url"))
        media = linked(Image if kind == "image_url" else File, url) if url is not None else None
        return media or unknown(NAME, part)
    return usual(part) or unknown(NAME, raw)


def calls_of(value: Any) -> list[AnyBlock]:
    """The calls of an answer, whose arguments are JSON text."""
    calls: list[AnyBlock] = []
    for raw in _listed(value):
        call = fields(raw)
        inner = fields(call.get("function")) or call
        id, name = call.get("id"), inner.get("name")
        if isinstance(id, str) and isinstance(name, str):
            calls.append(ToolCall(id=id, name=name, input=json_or_text(inner.get("arguments"))))
        else:
            calls.append(unknown(NAME, raw))
    return calls


def output(value: Any, note: str | None = None) -> str | list[AnyBlock]:
    """What a tool answered, with what the program added to it for the model."""
    if isinstance(value, str):
        return value if note is None else [Text(text=value), Text(text=note)]
    if isinstance(value, list):
        return [*blocks_of(value), *([Text(text=note)] if note else [])]
    return note or ("" if value is None else json_text(value))


def usage_of(raw: Any) -> Usage | None:
    """Input is counted apart from what a cache answered or took."""
    tokens = fields(raw)
    counts = [token_count(tokens.get(f"input_{snake}", tokens.get(f"input{camel}"))) for snake, camel in _INPUTS]
    return Usage(*counts, output_tokens=token_count(tokens.get("output"))) if tokens else None


def digest(raw: Any) -> str:
    """What a record says, as its file says it."""
    return sha256(msgspec.json.encode(raw)).hexdigest()[:24]


class RecordNames:
    """A name for every record: its own id if no other has it, or what it says and which of its kind it is."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def of(self, name: str) -> str:
        """That name, with a number from the second time on."""
        self._counts[name] += 1
        times = self._counts[name]
        return name if times == 1 else self.of(f"{name} {times}")


def parent_of(path: str, levels: int = 1) -> str:
    """The folder so many levels above a file."""
    return os.path.abspath(os.path.join(path, *[os.pardir] * levels))
