"""Parts, as Gemini's API and the programs around it know them."""

from __future__ import annotations

from typing import Any, cast

from turnlog.formats._shared.blocks import unknown
from turnlog.interop.base64 import from_base64
from turnlog.interop.value import fields, json_text, text
from turnlog.log.block import AnyBlock, File, Image, Text, ToolResult


def parts_of(content: Any) -> list[dict[str, Any]]:
    """Content is text, a part, or a list of either."""
    if isinstance(content, str):
        return [{"text": content}] if content else []
    if isinstance(content, list):
        parts = cast("list[Any]", content)
        return [{"text": part} if isinstance(part, str) else part for part in parts if isinstance(part, (str, dict))]
    return [fields(content)] if isinstance(content, dict) else []


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
