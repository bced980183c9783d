"""a3s-code 1.x and 2.x: one flat document per session."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from tests.formats.checkers import Faults
from tests.formats.checkers.rust import document, fields, is_int, is_number, is_sorted, is_text

_SESSION = (
    "id", "config", "state", "messages", "context_usage", "total_usage", "total_cost", "model_name?", "cost_records",
    "tool_names", "thinking_enabled", "thinking_budget", "created_at", "updated_at", "llm_config?", "tasks",
    "parent_id?",
)  # fmt: skip
_CONFIG = (
    "name", "workspace", "system_prompt", "max_context_length", "auto_compact", "auto_compact_threshold",
    "storage_type", "queue_config?", "confirmation_policy?", "permission_policy?", "parent_id?", "security_config?",
    "planning_mode", "goal_tracking",
)  # fmt: skip
_COST = (
    "model", "provider", "prompt_tokens", "completion_tokens", "total_tokens", "cost_usd", "timestamp", "session_id",
)  # fmt: skip
_BLOCKS = {
    "text": ("text",),
    "image": ("source",),
    "tool_use": ("id", "name", "input"),
    "tool_result": ("tool_use_id", "content", "is_error"),
}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}|\.\d{6}|\.\d{9})?Z")


def faults(path: str, data: bytes) -> list[str]:
    found = Faults()
    raw = fields(document(data, found), "the session", found, *_SESSION)
    if found:
        return found
    safe = re.sub(r"[/\\]", "_", raw["id"]).replace("..", "_")
    found.need(PurePosixPath(path) == PurePosixPath(f"{safe}.json"), f"the name {path}")
    found.need(raw["state"] in ("Unknown", "Active", "Paused", "Completed", "Error"), f"state {raw['state']}")
    _config(raw["config"], found)
    used = fields(raw["context_usage"], "context_usage", found, "used_tokens", "max_tokens", "percent", "turns")
    found.need(all(is_int(used.get(name)) for name in ("used_tokens", "max_tokens", "turns")), "context_usage")
    found.need(is_number(used.get("percent")), "percent")
    counts = ("prompt_tokens", "completion_tokens", "total_tokens", "cache_read_tokens", "cache_write_tokens")
    total = fields(raw["total_usage"], "total_usage", found, *counts)
    found.need(all(is_int(total.get(name)) for name in counts[:3]), "total_usage")
    found.need(all(total.get(name) is None or is_int(total[name]) for name in counts[3:]), "cached tokens")
    found.need(is_number(raw["total_cost"]), "total_cost")
    found.need(raw.get("model_name") is None or is_text(raw["model_name"]), "model_name")
    for index, cost in enumerate(raw["cost_records"]):
        fields(cost, f"cost {index}", found, *_COST)
        found.need(all(is_int(cost.get(name)) for name in counts[:3]), f"cost {index}: counts")
        found.need(_TIME.fullmatch(str(cost.get("timestamp"))), f"cost {index}: {cost.get('timestamp')}")
        found.need(cost.get("cost_usd") is None or is_number(cost["cost_usd"]), f"cost {index}: cost_usd")
    found.need(all(map(is_text, raw["tool_names"])), "tool_names")
    found.need(isinstance(raw["thinking_enabled"], bool), "thinking_enabled")
    found.need(raw["thinking_budget"] is None or is_int(raw["thinking_budget"]), "thinking_budget")
    for name in ("created_at", "updated_at"):
        found.need(is_int(raw[name], signed=True), name)
    if "llm_config" in raw:
        fields(raw["llm_config"], "llm_config", found, "provider", "model", "base_url")
    for index, message in enumerate(raw["messages"]):
        _message(message, f"message {index}", found)
    return found


def _config(config: Any, found: Faults) -> None:
    fields(config, "config", found, *_CONFIG)
    found.need(is_text(config.get("name")) and is_text(config.get("workspace")), "name or workspace")
    found.need(config.get("system_prompt") is None or is_text(config["system_prompt"]), "system_prompt")
    found.need(is_int(config.get("max_context_length"), 32), "max_context_length")
    found.need(is_number(config.get("auto_compact_threshold")), "auto_compact_threshold")
    found.need(config.get("storage_type") in ("memory", "file", "custom"), "storage_type")
    found.need(config.get("planning_mode") in ("Auto", "Disabled", "Enabled"), "planning_mode")


def _message(message: Any, where: str, found: Faults) -> None:
    fields(message, where, found, "role", "content", "reasoning_content?")
    found.need(message.get("role") in ("user", "assistant"), f"{where}: role {message.get('role')}")
    found.need(is_text(message.get("reasoning_content", "")), f"{where}: reasoning_content")
    if found.need(isinstance(message.get("content"), list), f"{where}: content"):
        for block in message["content"]:
            _block(block, where, found, tuple(_BLOCKS))


def _block(block: Any, where: str, found: Faults, kinds: tuple[str, ...]) -> None:
    kind = block.get("type") if isinstance(block, dict) else None
    if not found.need(kind in kinds, f"{where}: unknown variant {kind}"):
        return
    fields(block, where, found, "type", *_BLOCKS[kind])
    for name, value in block.items():
        if name == "source":
            fields(value, where, found, "type", "media_type", "data")
            found.need(value.get("type") == "base64" and all(map(is_text, value.values())), f"{where}: source")
        elif name == "input":
            found.need(is_sorted(value), f"{where}: input is not sorted")
        elif name == "is_error":
            found.need(value is None or isinstance(value, bool), f"{where}: is_error")
        elif name == "content" and isinstance(value, list):
            for part in value:
                _block(part, where, found, ("text", "image"))
        else:
            found.need(is_text(value), f"{where}: {name}")
