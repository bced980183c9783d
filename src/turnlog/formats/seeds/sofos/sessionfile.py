"""What reading and writing a session of sofos share: its keys, its counters, its system prompt, its display."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from turnlog.interop.rust import by_key, compact
from turnlog.interop.value import as_counter, as_list, fields, from_ms
from turnlog.log.block import AnyBlock, Text, Thinking, ToolCall, ToolResult
from turnlog.log.context import text_of
from turnlog.log.digest import sha256
from turnlog.log.entry import Message
from turnlog.log.usage import Usage

AGENT = "sofos"
COUNTERS = (
    "total_input_tokens", "total_output_tokens", "total_cache_read_tokens", "total_cache_creation_tokens",
    "peak_single_turn_input_tokens", "total_cost",
)  # fmt: skip
"""Running totals. For OpenAI's models, and not for others, input has what a cache answered in it."""
TOKENS = COUNTERS[:5]
PEAK = TOKENS[-1]
KEYS = (
    "id", "api_messages", "display_messages", "system_prompt", "created_at", "updated_at", *COUNTERS,
    "model", "readonly", "permission_preset",
)  # fmt: skip
"""In the order of 0.4.3, the newest."""
NEWER = ("model", "readonly", "permission_preset")
"""Keys that sofos 0.2.8 does not have."""
_ALWAYS = ("id", "api_messages", "system_prompt", "created_at", "updated_at", *TOKENS)
MODES: dict[str, type] = {"model": str, "readonly": bool, "safe_mode": bool, "permission_preset": str}
"""What else is a fact, if it is of that type. `safe_mode` is what `readonly` once was called."""
MAX_COUNT = (1 << 32) - 1
_ID = re.compile(r"[A-Za-z0-9_-]{1,120}")
_TIMED = re.compile(r"session_([0-9]{12,14})(?:_[0-9a-f]{8})?")
_OF_OPENAI = re.compile(r"(gpt|chatgpt|codex|o[0-9])")


def is_id(text: str) -> bool:
    """Whether sofos takes that as an id: since 0.2.11 it refuses what could lead out of its folder."""
    return _ID.fullmatch(text) is not None


def time_in(id: str) -> datetime | None:
    """The time that an id of sofos begins with."""
    match = _TIMED.fullmatch(id)
    return from_ms(int(match[1])) if match else None


def made_id(text: str) -> str:
    """An id for a session without a valid one, from the name of its file."""
    if is_id(text):
        return text
    digest = sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text)[:80] + "_" + digest


def is_count(name: str, value: Any) -> bool:
    """Whether that is the value of a counter."""
    return as_counter(value) is not None if name != "total_cost" else type(value) in (int, float)


def is_known(key: str, value: Any) -> bool:
    """Whether a key is known and its value has the expected type."""
    if key in COUNTERS:
        return is_count(key, value) or (key == "total_cost" and value is None)
    if key in MODES:
        return value is None or isinstance(value, MODES[key])
    return key in KEYS or key == "messages"


def usual_keys(raw: dict[str, Any]) -> list[str]:
    """The keys that sofos would write for such a session, in its order."""
    return [
        *(key for key in KEYS if key in _ALWAYS or (raw.get(key) is not None and raw[key] != [])),
        *(key for key in raw if key not in (*KEYS, "safe_mode", "messages")),
    ]


def counters_in(raw: dict[str, Any]) -> dict[str, Any]:
    """The running totals of a file, without what is no count."""
    return {name: raw[name] for name in COUNTERS if is_count(name, raw.get(name))}


def usage_of(counters: dict[str, Any], *, includes_cached: bool) -> Usage:
    """Running totals in fields that do not overlap."""
    input_tokens, output, cached, written, _ = (counters.get(name, 0) for name in TOKENS)
    cost = counters.get("total_cost")
    micros = None if cost is None or not 0 <= cost < 1e9 else round(cost * 1_000_000)
    fresh = max(0, input_tokens - cached) if includes_cached else input_tokens
    return Usage(fresh, cached, written, output_tokens=output, cost_micros=micros)


def counters_after(counters: dict[str, Any], usage: Usage, peak: int, *, includes_cached: bool) -> dict[str, Any]:
    """Running totals after more was spent."""
    input_tokens = usage.input_tokens + (usage.cache_read_tokens if includes_cached else 0)
    written = usage.cache_write_tokens + usage.cache_write_1h_tokens
    spent = zip(TOKENS, (input_tokens, usage.output_tokens, usage.cache_read_tokens, written, 0), strict=True)
    total = {**counters, **{name: counters.get(name, 0) + count for name, count in spent}}
    total[PEAK] = max(total[PEAK], peak)
    if usage.cost_micros is not None:
        total["total_cost"] = counters.get("total_cost", 0.0) + usage.cost_micros / 1_000_000
    return total


def counts_cached(model: str | None, messages: Iterable[Message]) -> bool:
    """Whether input that a cache answered is in the input counter: so with OpenAI's models."""
    if model is not None:
        return _OF_OPENAI.match(model) is not None
    return any(isinstance(b, Thinking) and b.provider == "openai" for m in messages for b in m.blocks)


def system_text(system: Any) -> str:
    """A system prompt of any version as one text."""
    if isinstance(system, str):
        return system
    texts = [fields(part).get("text") for part in as_list(system)]
    return "\n\n".join(text for text in texts if isinstance(text, str))


def system_list(text: str) -> list[Any]:
    """A system prompt as sofos writes it: one part, to be cached for an hour."""
    return [{"type": "text", "text": text, "cache_control": {"type": "ephemeral", "ttl": "1h"}}] if text else []


def is_plain(role: str, blocks: list[AnyBlock]) -> bool:
    """Whether sofos writes such content as a text and not as a list: what a person typed."""
    return role == "user" and len(blocks) == 1 and type(blocks[0]) is Text


def shown(messages: Iterable[Message], calls: dict[str, ToolCall] | None = None) -> list[dict[str, Any]]:
    """What sofos shows of these messages."""
    names = {} if calls is None else calls
    display: list[dict[str, Any]] = []
    for message in messages:
        names.update({block.id: block for block in message.blocks if isinstance(block, ToolCall)})
        if message.display is False:
            continue
        text = message.display if isinstance(message.display, str) else text_of(message.blocks)
        if text and message.role in ("user", "assistant"):
            name = "UserMessage" if message.role == "user" else "AssistantMessage"
            display.append({name: {"content": text}})
        elif message.role == "tool":
            display += [_execution(block, names) for block in message.blocks if isinstance(block, ToolResult)]
    return display


def _execution(result: ToolResult, calls: dict[str, ToolCall]) -> dict[str, Any]:
    call = calls.get(result.call)
    name, given = (call.name, by_key(call.input)) if call else (result.name or "", dict[str, Any]())
    output = result.content if isinstance(result.content, str) else text_of(result.content)
    return {"ToolExecution": {"tool_name": name, "tool_input": given, "tool_output": output}}


def shortened(display: list[Any], messages: list[dict[str, Any]]) -> list[Any]:
    """A display transcript as ranges of the items that its messages give (from, to), and whole items for all others."""
    places: defaultdict[bytes, list[int]] = defaultdict(list)
    for index, item in enumerate(messages):
        places[compact(item)].append(index)
    short: list[Any] = []
    after = 0
    for item in display:
        same = places[compact(item)]
        at = bisect_left(same, after)
        if at == len(same):
            short.append({"item": item})
            continue
        if short and isinstance(short[-1], list) and short[-1][1] == same[at]:
            short[-1][1] += 1
        else:
            short.append([same[at], same[at] + 1])
        after = same[at] + 1
    return short


def lengthened(short: Any, messages: list[dict[str, Any]]) -> list[Any]:
    """The display transcript again."""
    stretches = [
        [fields(item).get("item")] if isinstance(item, dict) else messages[item[0] : item[1]] for item in as_list(short)
    ]
    return [item for stretch in stretches for item in stretch]
