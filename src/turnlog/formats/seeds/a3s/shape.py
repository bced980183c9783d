"""The documents of a3s: which fields they have, in which order, and what stands where one is missing."""

from __future__ import annotations

from typing import Any, cast

from turnlog.formats._shared.rust import F32
from turnlog.formats._shared.value import counted, fields, in_order
from turnlog.log.usage import Usage

TOTAL, COST, FILLED = "a3s.total_usage", "a3s.total_cost", "a3s.context_usage"
UPDATED, MORE, WHOLE, LOOPS = "a3s.updated_at", "a3s.more", "a3s.snapshot", "a3s.loop_checkpoints"
NAMED = "a3s.model_name"
"""The model as the session itself names it; where it does not, the model is that of its service."""
FACTS = (TOTAL, COST, FILLED, UPDATED, MORE, WHOLE, LOOPS, NAMED)
POLICIES = ("confirmation_policy", "permission_policy")
STATES = ("Unknown", "Active", "Paused", "Completed", "Error")
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
_CONTEXT = ("used_tokens", "max_tokens", "percent", "turns")
_COST = (
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
_SETS = ("yolo_lanes",)


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
        return sorted(items) if name in _SETS and all(isinstance(item, str) for item in items) else items
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


def is_task(value: Any) -> bool:
    """Whether a3s takes it for a task."""
    named = fields(value)
    states = ("pending", "in_progress", "completed", "failed", "skipped", "cancelled")
    return all(isinstance(named.get(name), str) for name in ("id", "content")) and named.get("status") in states


def cost_record(value: Any) -> Any:
    """A cost record in the order of a3s, with its cost as a float."""
    if not isinstance(value, dict):
        return value
    costs = dict(cast("dict[str, Any]", value))
    costs["cost_usd"] = as_float(costs.get("cost_usd"))
    return in_order(costs, _COST)


def context_usage(value: dict[str, Any]) -> dict[str, Any]:
    """How full the context is; the share of it has 32 bits."""
    filled_in = {"used_tokens": 0, "max_tokens": 200_000, "percent": 0.0, "turns": 0, **value}
    filled_in["percent"] = F32(as_float(filled_in["percent"]) or 0.0)
    return in_order(filled_in, _CONTEXT)


def config(value: dict[str, Any]) -> dict[str, Any]:
    """A configuration as it is written; the threshold has 32 bits."""
    whole = filled(cast("dict[str, Any]", settled(value)), CONFIG)
    threshold = as_float(whole["auto_compact_threshold"])
    whole["auto_compact_threshold"] = F32(0.8 if threshold is None else threshold)
    return whole


def to_usage(raw: Any, *, is_apart: bool) -> Usage:
    """Their counters as ours. With some providers, what a cache answered is counted in the prompt, too."""
    counts = fields(raw)
    prompt, output, _, cached, written = (count(counts.get(name)) for name in USAGE)
    return Usage(prompt if is_apart else max(0, prompt - cached - written), cached, written, 0, output)


def is_apart(facts: dict[str, Any]) -> bool:
    """Whether the provider counts what a cache answered apart from the prompt."""
    provider, model = fields(facts.get("llm_config")).get("provider"), facts.get("model")
    return provider == "anthropic" or (isinstance(model, str) and model.startswith("claude"))


def as_float(value: Any) -> float | None:
    """A number as a float."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1 << 1023:
        return float(value)
    return None


def count(value: Any) -> int:
    """A counter, or 0 for what is none."""
    return counted(value) or 0
