"""What the Responses API answers, as one message."""

from __future__ import annotations

from typing import Any

import msgspec

from turnlog.interop.value import fields, items
from turnlog.log.block import AnyBlock, Text, Thinking, ToolCall, UnknownBlock
from turnlog.log.entry import Message
from turnlog.wire import Ending, own, tagged
from turnlog.wire._name import log_name
from turnlog.wire._tool import input_of
from turnlog.wire.openai.part import COMPACTION, PROVIDER, REFUSAL, RUN_BY_PROVIDER, is_whole, usage_of


def draft(data: dict[str, Any], originals: dict[str, str], account: str | None) -> Message:
    """A response as one message."""
    cut = _cut_calls(data)
    output = [item for item in items(data.get("output")) if item not in cut]
    if data.get("object") == "response.compaction" and output:  # a whole window, to be sent as it is
        blocks: list[AnyBlock] = [_compacted(output, account)]
    else:
        blocks = [block for item in output for block in item_blocks(item, originals, account)]
    end = _ending(data, blocks)
    return Message(
        role="assistant",
        blocks=blocks,
        model=data.get("model"),
        request=data.get("id"),
        usage=usage_of(data["usage"]) if isinstance(data.get("usage"), dict) else None,
        stop=end.stop,
        error=end.error,
        meta=tagged(PROVIDER, {"partial": [*items(data.get("partial")), *cut]}, None),
    )


def _cut_calls(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls that were still being written when the response ended. Of text, only the last one can be cut."""
    status, output = data.get("status", "completed"), items(data.get("output"))
    if status == "completed":
        return []
    last = output[-1:] if status == "incomplete" else []
    cut = [item for item in output if item.get("type") == "function_call" and not is_whole(item.get("arguments"))]
    return cut + [item for item in last if item.get("type") == "custom_tool_call"]


def _ending(data: dict[str, Any], blocks: list[AnyBlock]) -> Ending:
    status = data.get("status", "completed")
    reason = fields(data.get("incomplete_details")).get("reason")
    if data.get("error"):
        return Ending("error", data["error"])
    if status == "incomplete":
        if reason == "content_filter":
            return Ending("error", {"type": REFUSAL, "reason": reason})
        return Ending("length" if reason in ("max_output_tokens", "max_messages") else "aborted")
    if status != "completed":
        return Ending("error" if status == "failed" else "aborted")
    if any((own(block, PROVIDER, None) or {}).get(REFUSAL) for block in blocks):
        return Ending("error", {"type": REFUSAL})
    called = any(isinstance(block, ToolCall) and block.by is None for block in blocks)
    return Ending("tool_use" if called else "end")


def item_blocks(item: dict[str, Any], originals: dict[str, str], account: str | None) -> list[AnyBlock]:
    """What an item of a response is made of."""
    kind = item.get("type")
    if kind == "message":
        return texts_of(item.get("content"), item.get("phase"), account)
    if kind == "reasoning":
        texts = [str(part.get("text") or "") for part in items(item.get("summary")) or items(item.get("content"))]
        kept = {key: value for key, value in item.items() if key not in ("type", "status")}
        data = {"item": kept} if account is None else {"item": kept, "account": account}
        return [Thinking(text="\n\n".join(texts), provider=PROVIDER, data=data)]
    if kind == COMPACTION and item.get("encrypted_content"):
        return [_compacted([item], account)]
    if kind in ("function_call", "custom_tool_call"):
        is_custom = kind == "custom_tool_call"
        return [
            ToolCall(
                id=log_name(str(item.get("call_id") or item.get("id") or ""), originals),
                name=log_name(str(item.get("name") or ""), originals),
                input=item.get("input") if is_custom else input_of(item.get("arguments")),
                meta=tagged(PROVIDER, {"type": "custom"}, account) if is_custom else None,
            )
        ]
    if kind in RUN_BY_PROVIDER:
        about = next((item[key] for key in ("action", "arguments", "queries", "code") if item.get(key)), None)
        name = str(item.get("name") or kind.removesuffix("_call"))
        meta = tagged(PROVIDER, {"item": item}, account)
        return [ToolCall(id=str(item.get("id") or ""), name=name, input=input_of(about), by="provider", meta=meta)]
    return [UnknownBlock(kind=str(kind), json=msgspec.json.encode(item).decode())]


def _compacted(output: list[dict[str, Any]], account: str | None) -> Thinking:
    data = {"compaction": output} if account is None else {"compaction": output, "account": account}
    return Thinking(provider=PROVIDER, data=data)


def texts_of(content: Any, phase: Any, account: str | None) -> list[AnyBlock]:
    """What the model said. Also of a message as it is sent, where the content may be text alone."""
    parts = [{"type": "output_text", "text": content}] if isinstance(content, str) else items(content)
    blocks: list[AnyBlock] = []
    for part in parts:
        refusal = part.get("refusal")
        own_meta = {
            "phase": phase,
            "annotations": part.get("annotations"),
            REFUSAL: refusal is not None or None,
        }
        text = str(refusal if refusal is not None else part.get("text") or "")
        if text:
            blocks.append(Text(text=text, meta=tagged(PROVIDER, own_meta, account)))
    return blocks
