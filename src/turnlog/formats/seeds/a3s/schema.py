"""The documents of a3s: their fields in order, and messages, in which results of tools are a user's."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, cast

from msgspec.structs import replace

from turnlog.formats._shared.blocks import in_base64, original, unknown
from turnlog.formats._shared.tally import Tally, stand_in
from turnlog.interop.patch import apply_deep, deep_patch
from turnlog.interop.rust import by_key
from turnlog.interop.value import as_counter, as_list, fields, in_order, without_none
from turnlog.log.block import AnyBlock, Image, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.entry import Message
from turnlog.log.usage import Usage

NAME = "a3s"
_ROLES = ("system", "user", "assistant", "tool")
TOTAL, COST, FILLED = "a3s.total_usage", "a3s.total_cost", "a3s.context_usage"
UPDATED, MORE, WHOLE, LOOPS = "a3s.updated_at", "a3s.more", "a3s.snapshot", "a3s.loop_checkpoints"
NAMED = "a3s.model_name"
"""The model as the session itself names it; where it does not, the model is that of its service."""
RUNNING = {TOTAL: "total_usage", FILLED: "context_usage", COST: "total_cost", UPDATED: "updated_at"}
FACTS = (TOTAL, COST, FILLED, UPDATED, MORE, WHOLE, LOOPS, NAMED)
POLICIES = ("confirmation_policy", "permission_policy")
STATES = ("Unknown", "Active", "Paused", "Completed", "Error")
PROGRESS = ("pending", "in_progress", "completed", "failed", "skipped", "cancelled")
CONFIG: dict[str, Any] = {
    "name": "", "workspace": "", "system_prompt": None, "max_context_length": 200_000, "auto_compact": False,
    "auto_compact_threshold": 0.8, "storage_type": "file", "queue_config": ..., "confirmation_policy": ...,
    "permission_policy": ..., "parent_id": ..., "security_config": ..., "planning_mode": "Auto", "goal_tracking": False,
}  # fmt: skip
"""Every field with what stands for it; `...` for those that are left out."""
SNAPSHOT: dict[str, Any] = {
    "schema_version": 1, "session": ..., "artifacts": [], "retained_artifact_uris": [], "trace_events": [],
    "run_records": [], "verification_reports": [], "subagent_tasks": [],
}  # fmt: skip
USAGE = ("prompt_tokens", "completion_tokens", "total_tokens", "cache_read_tokens", "cache_write_tokens")
CONTEXT = ("used_tokens", "max_tokens", "percent", "turns")
COST_RECORD = (
    "model", "provider", "prompt_tokens", "completion_tokens", "total_tokens", "cost_usd", "timestamp", "session_id",
)  # fmt: skip
_TASK = ("id", "content", "status", "priority", "tool", "dependencies", "success_criteria")
_QUEUE = (
    "controlMaxConcurrency", "queryMaxConcurrency", "executeMaxConcurrency", "generateMaxConcurrency", "laneHandlers",
    "enableDlq", "dlqMaxSize", "enableMetrics", "enableAlerts", "defaultTimeoutMs", "storagePath", "retryPolicy",
    "rateLimit", "priorityBoost", "pressureThreshold", "laneTimeouts",
)  # fmt: skip
_INSIDE: dict[str, tuple[str, ...]] = {
    "queue_config": _QUEUE,
    "retryPolicy": ("strategy", "maxRetries", "initialDelayMs", "fixedDelayMs"),
    "rateLimit": ("limitType", "maxOperations"),
    "priorityBoost": ("strategy", "deadlineMs"),
    "confirmation_policy": ("enabled", "default_timeout_ms", "timeout_action", "yolo_lanes"),
    "permission_policy": ("deny", "allow", "ask", "default_decision", "enabled"),
    "security_config": (
        "enabled", "classification_rules", "redaction_strategy", "network_whitelist", "dangerous_commands", "features",
    ),
    "features": ("output_sanitizer", "taint_tracking", "tool_interceptor", "injection_defense"),
}  # fmt: skip
_MAPS = ("laneHandlers", "laneTimeouts")


def filled(value: dict[str, Any], shape: dict[str, Any]) -> dict[str, Any]:
    """The same object in the order of its shape, with what is missing."""
    whole = {name: value.get(name, default) for name, default in shape.items()}
    return {**{name: item for name, item in whole.items() if item is not ...}, **value}


def settled(value: Any, name: str = "") -> Any:
    """Configuration with its objects in the order of a3s, and with its unordered sets and maps in one that stays."""
    if isinstance(value, dict):
        fields_of = cast("dict[str, Any]", value)
        if name in _MAPS:
            fields_of = {key: fields_of[key] for key in sorted(fields_of)}
        return in_order({key: settled(item, key) for key, item in fields_of.items()}, _INSIDE.get(name, ()))
    if isinstance(value, list):
        items = [settled(item) for item in cast("list[Any]", value)]
        return sorted(items) if name == "yolo_lanes" and all(isinstance(item, str) for item in items) else items
    return value


def task(value: Any) -> Any:
    """A task under the names of today."""
    if not isinstance(value, dict):
        return value
    named = dict(fields(value))
    if "description" in named:
        named.setdefault("content", named.pop("description"))
    named.setdefault("priority", "medium")
    return in_order(named, _TASK)


def to_usage(raw: Any, *, is_apart: bool) -> Usage:
    """Their counters as ours. With some providers, what a cache answered is counted in the prompt, too."""
    counts = fields(raw)
    prompt, output, _, cached, written = (as_counter(counts.get(name)) or 0 for name in USAGE)
    return Usage(prompt if is_apart else max(0, prompt - cached - written), cached, written, 0, output)


def is_apart(facts: dict[str, Any]) -> bool:
    """Whether the provider counts what a cache answered apart from the prompt."""
    provider, model = fields(facts.get("llm_config")).get("provider"), facts.get("model")
    return provider == "anthropic" or (isinstance(model, str) and model.startswith("claude"))


def read_message(raw: Any, at: datetime | None, tell: Callable[[str], None], run: str | None = None) -> list[Message]:
    """One message as one entry, or as two where tool results and what a user said are mixed; none if it is none."""
    record = fields(raw)
    role, content, thought = record.get("role"), record.get("content"), record.get("reasoning_content")
    if isinstance(content, str):
        tell("content that is a text: read as one block")
        content = [{"type": "text", "text": content}]
    if not isinstance(role, str) or not isinstance(content, list):
        tell("a message without role or content: left out")
        return []
    items = cast("list[Any]", content)
    blocks = [_block(item, tell) for item in items]
    results = [index for index, block in enumerate(blocks) if role != "assistant" and isinstance(block, ToolResult)]
    rest = sorted({*range(len(blocks))} - {*results})
    thoughts: list[AnyBlock] = [Thinking(text=thought)] if isinstance(thought, str) else []
    parts: list[tuple[Any, list[AnyBlock], list[int]]] = [("tool", [], results)] if results else []
    if rest or thoughts or not results:
        parts.append((role if role in _ROLES else "user", thoughts, rest))
    messages: list[Message] = []
    for ours, before, places in parts:
        message = Message(role=ours, blocks=[*before, *(blocks[index] for index in places)], at=at)
        plain = _plain(message, Tally())
        original_part = {**(plain if messages else record), "content": [items[index] for index in places]}
        patch = deep_patch(plain, original_part, keeps_additions=True)
        origin = {"run": run, "joins": places if messages else None, "patch": patch}
        messages.append(replace(message, origin={"agent": NAME, **without_none(origin)}))
    return messages


def _block(raw: Any, tell: Callable[[str], None]) -> AnyBlock:
    match raw:
        case {"type": "text", "text": str(words)}:
            return Text(text=words)
        case {"type": "image", "source": source} if (picture := in_base64(source)) is not None:
            return picture
        case {"type": "tool_use", "id": str(id), "name": str(name)}:
            return ToolCall(id=id, name=name, input=raw.get("input"))
        case {"type": "tool_result", "tool_use_id": str(call), "content": content} if isinstance(content, (str, list)):
            parts = content if isinstance(content, str) else [_block(item, tell) for item in as_list(content)]
            return ToolResult(call=call, content=parts, is_error=raw.get("is_error") is True)
        case _:
            tell(f"a block of the unknown type {fields(raw).get('type')!r:.80}: kept as it is")
            return unknown(NAME, raw)


def own_record(message: Message, tally: Tally) -> dict[str, Any]:
    """A message that was a3s' own, as it was; of one in two parts, this part."""
    return apply_deep(_plain(message, tally), fields(message.origin).get("patch"))


def _plain(message: Message, tally: Tally) -> dict[str, Any]:
    role = "user" if message.role == "tool" else message.role
    return _message_record(role, message.blocks, tally, is_own=True)


def _message_record(role: str, blocks: list[AnyBlock], tally: Tally, *, is_own: bool = False) -> dict[str, Any]:
    thoughts = [block.text for block in blocks if isinstance(block, Thinking)]
    content = [_record(block, tally, is_own=is_own) for block in blocks if not isinstance(block, Thinking)]
    record = {"role": role, "content": content}
    return {**record, "reasoning_content": "\n\n".join(thoughts)} if thoughts else record


def join(first: dict[str, Any], second: dict[str, Any], places: list[Any]) -> None:
    """Put the second part of a message back between the blocks of the first."""
    for place, block in zip(places, second["content"], strict=False):
        first["content"].insert(place if isinstance(place, int) else len(first["content"]), block)
    first["content"] += second["content"][len(places) :]


def records_of(message: Message, tally: Tally) -> Iterator[dict[str, Any]]:
    """A message that is not a3s': each tool result in a message of its own, as a3s does it."""
    results = [block for block in message.blocks if isinstance(block, ToolResult) and message.role == "tool"]
    rest = [block for block in message.blocks if message.role != "tool" or not isinstance(block, ToolResult)]
    yield from (_message_record("user", [block], tally) for block in results)
    if not rest:
        return
    tally.add("system message", "a user's message", int(message.role == "system"))
    blocks: list[AnyBlock] = [Text(text=stand_in(block)) if isinstance(block, ToolResult) else block for block in rest]
    record = _message_record("assistant" if message.role == "assistant" else "user", blocks, tally)
    thoughts = [block for block in rest if isinstance(block, Thinking)]
    tally.add("sealed reasoning", "its readable part", sum(block.data is not None for block in thoughts))
    tally.add("separate texts", "one text", int(len(thoughts) > 1))
    yield record


def _record(block: AnyBlock, tally: Tally, *, is_own: bool = False) -> Any:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    if isinstance(block, Image) and (data := tally.data(block)) is not None:
        media = block.media_type or "application/octet-stream"
        return {"type": "image", "source": {"type": "base64", "media_type": media, "data": b64encode(data).decode()}}
    if isinstance(block, ToolCall) and block.by is None:
        given = by_key(block.input) if is_own else tally.as_rust_json(block.input)
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": given}
    if isinstance(block, ToolResult):
        content: Any = block.content
        if not isinstance(block.content, str):
            kinds = (Text, Image, UnknownBlock)
            parts = (part if isinstance(part, kinds) else Text(text=stand_in(part)) for part in block.content)
            content = [_record(part, tally, is_own=is_own) for part in parts]
        return {"type": "tool_result", "tool_use_id": block.call, "content": content, "is_error": block.is_error}
    if is_own and isinstance(block, UnknownBlock):
        return original(NAME, block)
    what = "provider's tool call" if isinstance(block, ToolCall) else str(block.__struct_config__.tag)
    tally.add(block.kind if isinstance(block, UnknownBlock) else what, "a text that says so")
    return {"type": "text", "text": stand_in(block)}
