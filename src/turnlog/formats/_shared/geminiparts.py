"""Parts, as Gemini's API and the programs around it know them."""

from __future__ import annotations

from typing import Any, cast

from turnlog.formats._shared.blocks import unknown
from turnlog.interop.base64 import from_base64
from turnlog.interop.value import fields, json_text, text
from turnlog.log.block import AnyBlock, File, Image, Text, ToolResult


def parts_of(content: Any) -> list[dict[str, Any]]:
    """Content is text, a part, or a list of either. Any other value is a part that nobody knows."""
    if not isinstance(content, list):
        content = [] if content is None or content == "" else [content]
    return [_part(part) for part in cast("list[Any]", content)]


def _part(value: Any) -> dict[str, Any]:
    return fields(value) if isinstance(value, dict) else {"text" if isinstance(value, str) else "unknown": value}


def split_results(content: Any) -> tuple[list[AnyBlock], list[AnyBlock]]:
    """The blocks of a person's message, and the results of tools among them."""
    blocks: list[AnyBlock] = []
    results: list[AnyBlock] = []
    for part in parts_of(content):
        if "functionResponse" in part:
            results.append(response(fields(part.get("functionResponse"))))
        else:
            blocks.append(block(part))
    return blocks, results


def block(part: dict[str, Any]) -> AnyBlock:
    """One part that is no call and no response."""
    if isinstance(part.get("text"), str):
        return Text(text=part["text"])
    inline, file = fields(part.get("inlineData")), fields(part.get("fileData"))
    kind = text(inline.get("mimeType")) or text(file.get("mimeType"))
    make = Image if (kind or "").startswith("image/") else File
    data = from_base64(inline.get("data"))
    if data is not None:
        return make(media_type=kind, data=data)
    if text(file.get("fileUri")) and not isinstance(inline.get("data"), str):
        return make(media_type=kind, url=file["fileUri"])
    return unknown("gemini", part)


def response(raw: dict[str, Any]) -> ToolResult:
    """What a tool answered."""
    answer = fields(raw.get("response"))
    is_error = "error" in answer and "output" not in answer
    output = answer.get("output", answer.get("error"))
    content = output if isinstance(output, str) else json_text(answer)
    name = text(raw.get("name"))
    return ToolResult(call=str(raw.get("id") or name or ""), name=name, content=content, is_error=is_error)
