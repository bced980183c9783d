"""sofos 0.2.8: one document per session, every field it writes, and not one that came later."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from tests.formats.checkers import Faults
from tests.formats.checkers.rust import document, fields, is_int, is_sorted, is_text, pair

_COUNTERS = (
    "total_input_tokens", "total_output_tokens", "total_cache_read_tokens", "total_cache_creation_tokens",
    "peak_single_turn_input_tokens",
)  # fmt: skip
_BLOCKS = {
    "text": ("text",),
    "image": ("source",),
    "thinking": ("thinking", "signature"),
    "summary": ("summary",),
    "compaction": ("content",),
    "reasoning": ("id", "summary", "encrypted_content?"),
    "tool_use": ("id", "name", "input"),
    "tool_result": ("tool_use_id", "content"),
    "server_tool_use": ("id", "name", "input"),
    "web_search_tool_result": ("tool_use_id", "content"),
}


def faults(path: str, data: bytes) -> list[str]:
    found = Faults()
    raw = document(data, found)
    session = fields(
        raw, "the session", found, "id", "api_messages", "display_messages?", "system_prompt", "created_at",
        "updated_at", *_COUNTERS,
    )  # fmt: skip
    if found:
        return found
    found.need(PurePosixPath(path).name == f"{session['id']}.json", f"the name {path}")
    found.need(re.fullmatch(r"session_\d+(_[0-9a-f]{8})?", session["id"]), f"the id {session['id']}")
    for name in ("created_at", "updated_at"):
        found.need(is_int(session[name]), name)
    for name in _COUNTERS:
        found.need(is_int(session[name], 32), f"{name} is {session[name]}")
    found.need(session.get("display_messages") != [], "display_messages are empty and not left out")
    for index, part in enumerate(session["system_prompt"]):
        _block(part, f"system prompt {index}", found, ("text",))
    for index, message in enumerate(session["api_messages"]):
        where = f"message {index}"
        content = fields(message, where, found, "role", "content").get("content")
        found.need(message.get("role") in ("user", "assistant"), f"{where}: role")
        if found.need(is_text(content) or isinstance(content, list), f"{where}: content") and isinstance(content, list):
            for number, block in enumerate(content):
                _block(block, f"{where}, block {number}", found, tuple(_BLOCKS))
    for index, shown in enumerate(session.get("display_messages", [])):
        _shown(shown, f"display {index}", found)
    return found


def _block(block: Any, where: str, found: Faults, kinds: tuple[str, ...]) -> None:
    kind = block.get("type") if isinstance(block, dict) else None
    if not found.need(kind in kinds, f"{where}: data did not match any variant, {kind}"):
        return
    fields(block, where, found, "type", *_BLOCKS[kind], "cache_control?")
    for name, value in block.items():
        if name == "cache_control":
            mark = fields(value, f"{where}, cache_control", found, "type", "ttl?")
            found.need(mark.get("type") == "ephemeral" and mark.get("ttl", "5m") in ("5m", "1h"), f"{where}: cache")
        elif name == "input":
            found.need(is_sorted(value), f"{where}: input is not sorted")
        elif name == "source":
            _source(value, f"{where}, source", found)
        elif (kind, name) == ("reasoning", "summary"):
            found.need(isinstance(value, list) and all(map(is_text, value)), f"{where}: summary")
        elif (kind, name) == ("web_search_tool_result", "content"):
            for hit in value:
                fields(hit, where, found, "type", "url", "title", "encrypted_content", "page_age")
        else:
            found.need(is_text(value), f"{where}: {name} is no text")


def _source(value: Any, where: str, found: Faults) -> None:
    kind = value.get("type") if isinstance(value, dict) else None
    names = ("url",) if kind == "url" else ("media_type", "data")
    found.need(kind in ("url", "base64"), f"{where}: {kind}")
    found.need(all(map(is_text, fields(value, where, found, "type", *names).values())), where)


def _shown(value: Any, where: str, found: Faults) -> None:
    kind, inner = pair(value, where, found)
    if kind == "ToolExecution":
        fields(inner, where, found, "tool_name", "tool_input", "tool_output")
        found.need(is_sorted(inner.get("tool_input")), f"{where}: input is not sorted")
        found.need(is_text(inner.get("tool_name")) and is_text(inner.get("tool_output")), where)
    elif found.need(kind in ("UserMessage", "AssistantMessage"), f"{where}: unknown variant {kind}"):
        found.need(is_text(fields(inner, where, found, "content").get("content")), where)
