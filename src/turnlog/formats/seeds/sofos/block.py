"""One block of sofos as one block of ours, and back: the shapes of Anthropic's API with a few of OpenAI's.

`json_of(block_of(raw))` is `raw` for everything sofos writes itself but cache marks. Those, and what else may be in a
raw block (an unknown key, another order of keys), are a patch, kept beside the block.
"""

from __future__ import annotations

import base64
from typing import Any, cast

from turnlog.formats._shared.blocks import in_base64, original
from turnlog.formats._shared.tally import Tally, stand_in
from turnlog.formats.seeds.sofos.sessionfile import AGENT
from turnlog.interop.json import is_deep
from turnlog.interop.rust import by_key, compact
from turnlog.interop.value import as_list, fields
from turnlog.log.block import BLOCKS, AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.entry import Message

FAILED = "Tool execution error:"
"""How a result begins that sofos made of an error: it has no flag for that."""
SEARCHED = "web_search_tool_result"
_REQUIRED: dict[str, tuple[str, ...]] = {
    "text": ("text",), "image": ("source",), "thinking": ("thinking", "signature"), "summary": ("summary",),
    "compaction": ("content",), "reasoning": ("id",), "tool_use": ("id", "name", "input"),
    "tool_result": ("tool_use_id", "content"), "server_tool_use": ("id", "name", "input"),
    SEARCHED: ("tool_use_id", "content"),
}  # fmt: skip
_WRAPPED = "sofos.block"
_DEEPEST = 120
"""serde_json gives up at 128 levels, and a block is on the sixth."""
_SEALED = ("type", "id", "summary", "encrypted_content")
_NOT_TEXT = ("source", "input", "content")


def flaw(raw: Any) -> str | None:
    """What keeps sofos from reading a block of a kind it knows. None also for kinds that are new to us."""
    if not isinstance(raw, dict):
        return "a block that is no object"
    kind = fields(raw).get("type")
    if not isinstance(kind, str):
        return "a block without a type"
    for name in _REQUIRED.get(kind, ()):
        if name not in raw:
            return f"a {kind} block without its {name}"
        if name not in _NOT_TEXT and not isinstance(raw[name], str):
            return f"a {kind} block whose {name} is no text"
    return None


def block_of(raw: Any) -> AnyBlock:
    """A block as it is written in a file."""
    block = None if flaw(raw) else _known(cast("dict[str, Any]", raw))
    if block is not None:
        return block
    kind = fields(raw).get("type")
    if not isinstance(kind, str) or kind in BLOCKS:
        # In a log, the JSON of an unknown block stands for itself: it must not look like one of ours.
        kind, raw = _WRAPPED, {"type": _WRAPPED, "block": raw}
    return UnknownBlock(kind=kind, json=compact(raw).decode())


def _known(raw: dict[str, Any]) -> AnyBlock | None:
    kind = raw["type"]
    if kind == "text":
        return Text(text=raw["text"])
    if kind == "image":
        return _image(raw["source"])
    if kind == "thinking":
        return Thinking(text=raw["thinking"], provider="anthropic", data={"signature": raw["signature"]})
    if kind == "summary":
        return Thinking(text=raw["summary"], provider="openai")
    if kind == "reasoning":
        return _reasoning(raw)
    if kind in ("tool_use", "server_tool_use"):
        by = None if kind == "tool_use" else "provider"
        return ToolCall(id=raw["id"], name=raw["name"], input=raw["input"], by=by)
    if kind == "tool_result":
        text = _readable(raw["content"])
        return ToolResult(call=raw["tool_use_id"], content=text, is_error=text.startswith(FAILED))
    if kind == SEARCHED:
        block = {key: value for key, value in raw.items() if key != "cache_control"}
        meta = {"anthropic": {"block": block}}
        return ToolResult(call=raw["tool_use_id"], name="web_search", content=_readable(raw["content"]), meta=meta)
    return None


def _readable(content: Any) -> str:
    """What people can read of a result."""
    if isinstance(content, str):
        return content
    texts = [fields(part).get(key) for part in as_list(content) for key in ("title", "url", "text")]
    return "\n".join(item for item in texts if isinstance(item, str))


def _image(source: Any) -> Image | None:
    image = fields(source)
    if list(image) == ["type", "url"] and image["type"] == "url" and isinstance(image["url"], str):
        return Image(url=image["url"])
    return in_base64(source)


def _reasoning(raw: dict[str, Any]) -> Thinking | None:
    summary = raw.get("summary", [])
    if not isinstance(summary, list) or not all(isinstance(text, str) for text in cast("list[Any]", summary)):
        return None
    texts = cast("list[str]", summary)
    item: dict[str, Any] = {"id": raw["id"], "summary": [{"type": "summary_text", "text": text} for text in texts]}
    if isinstance(raw.get("encrypted_content"), str):
        item["encrypted_content"] = raw["encrypted_content"]
    return Thinking(text="\n\n".join(texts), provider="openai", data={"item": item})


def record_of(message: Message, tally: Tally, *, ours: bool) -> dict[str, Any]:
    """A message as sofos writes it; None for each block that nothing could stand for."""
    role = "user" if message.role == "tool" else message.role  # a result is said by the user
    return {"role": role, "content": [json_of(block, tally, ours=ours) for block in message.blocks]}


def json_of(block: AnyBlock, tally: Tally, *, ours: bool = False) -> dict[str, Any] | None:
    """A block as sofos writes it; None if there is nothing that could stand for it.

    A block of a kind that nobody here knows goes back only to the sofos it came from: any other refuses the session.
    """
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    if isinstance(block, Thinking):
        return _thinking(block, tally)
    if isinstance(block, ToolCall):
        kind = "server_tool_use" if block.by == "provider" else "tool_use"
        given = by_key(block.input) if ours else tally.as_rust_json(block.input)
        if is_deep(given, _DEEPEST):
            tally.add("deeply nested input", "its JSON as a text")
            given = compact(given).decode()
        return {"type": kind, "id": block.id, "name": block.name, "input": given}
    if isinstance(block, ToolResult):
        return _result(block, tally)
    if isinstance(block, Image) and (source := _source(block, tally)) is not None:
        return {"type": "image", "source": source}
    if isinstance(block, (Image, File)):
        tally.add("image" if isinstance(block, Image) else "file", "a text with its name")
        return {"type": "text", "text": stand_in(block)}
    raw = fields(original(AGENT, block))
    if ours and flaw(raw) is None:
        return raw
    tally.add(f"{raw.get('type') or '?'} block")
    return None


def _thinking(block: Thinking, tally: Tally) -> dict[str, Any] | None:
    data = fields(block.data)
    signature, item = data.get("signature"), data.get("item")
    if block.provider == "anthropic" and isinstance(signature, str):
        return {"type": "thinking", "thinking": block.text, "signature": signature}
    if block.provider == "openai" and isinstance(item, dict):
        reasoning = fields(item)
        texts = [str(fields(part).get("text") or "") for part in as_list(reasoning.get("summary"))]
        record = {"type": "reasoning", "id": str(reasoning.get("id") or ""), "summary": texts}
        hidden = reasoning.get("encrypted_content")
        more = [name for name, value in reasoning.items() if name not in _SEALED and value is not None]
        tally.add("sealed reasoning", "as much of it as sofos keeps", int(bool(more)))
        return {**record, "encrypted_content": hidden} if isinstance(hidden, str) else record
    if block.provider != "openai" or data:
        tally.add("reasoning without its seal", "a summary")
    return {"type": "summary", "summary": block.text} if block.text or block.provider == "openai" else None


def _result(block: ToolResult, tally: Tally) -> dict[str, Any]:
    kept = fields(fields(fields(block.meta).get("anthropic")).get("block"))
    if kept.get("type") == SEARCHED and flaw(kept) is None:
        return kept
    text = tally.result(block.content)
    if block.is_error and not text.startswith(FAILED):
        tally.add("error flag of a tool result", "its text")
    return {"type": "tool_result", "tool_use_id": block.call, "content": text}


def _source(block: Image, tally: Tally) -> dict[str, Any] | None:
    content = tally.data(block)
    if content is None:
        return {"type": "url", "url": block.url} if block.url is not None else None
    data = base64.b64encode(content).decode()
    return {"type": "base64", "media_type": block.media_type or "image/png", "data": data}
