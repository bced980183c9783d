"""What reading and writing a session of sofos share: its keys, its counters, its system prompt, its display."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, cast

from msgspec import Struct

from turnlog.formats._shared.rust import by_key, compact
from turnlog.formats._shared.value import EPOCH, fields, listed
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
TOKENS = COUNTERS[:5]
KEYS = (
    "id", "api_messages", "display_messages", "system_prompt", "created_at", "updated_at", *COUNTERS,
    "model", "readonly", "permission_preset",
)  # fmt: skip
"""In the order of 0.4.3, the newest."""
_ALWAYS = ("id", "api_messages", "system_prompt", "created_at", "updated_at", *TOKENS)
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
    return EPOCH + timedelta(milliseconds=int(match[1])) if match else None


def made_id(text: str) -> str:
    """An id for a session whose own is none."""
    if is_id(text):
        return text
    digest = sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text)[:80] + "_" + digest


def is_count(name: str, value: Any) -> bool:
    """Whether that is the value of a counter."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int) and value >= 0 if name != "total_cost" else isinstance(value, (int, float))


def is_known(key: str, value: Any) -> bool:
    """Whether that key says what we know it to say."""
    if key in COUNTERS:
        return is_count(key, value) or (key == "total_cost" and value is None)
    if key in ("model", "permission_preset"):
        return value is None or isinstance(value, str)
    if key in ("readonly", "safe_mode"):
        return value is None or isinstance(value, bool)
    return key in KEYS or key == "messages"


def usual_keys(raw: dict[str, Any]) -> list[str]:
    """The keys that sofos would write for such a session, in its order."""
    return [
        *(key for key in KEYS if key in _ALWAYS or (raw.get(key) is not None and raw[key] != [])),
        *(key for key in raw if key not in (*KEYS, "safe_mode", "messages")),
    ]


class Counters(Struct):
    """Running totals. `input` has the input that a cache answered in it for OpenAI's models, and not for others."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    peak: int = 0
    cost: float | None = None

    @classmethod
    def of(cls, raw: dict[str, Any]) -> Counters:
        """As a file has them; what is no count is 0."""
        counts = [raw[name] if is_count(name, raw.get(name)) else 0 for name in TOKENS]
        cost = raw.get("total_cost")
        return cls(*counts, cost=cost if is_count("total_cost", cost) else None)

    def usage(self, includes_cached: bool) -> Usage:
        """The same in fields that do not overlap."""
        uncached = max(0, self.input - self.cache_read) if includes_cached else self.input
        micros = None if self.cost is None or not 0 <= self.cost < 1e12 else round(self.cost * 1_000_000)
        return Usage(
            input_tokens=uncached, cache_read_tokens=self.cache_read, cache_write_tokens=self.cache_write,
            output_tokens=self.output, cost_micros=micros,
        )  # fmt: skip

    def spend(self, usage: Usage, peak: int, includes_cached: bool) -> None:
        """Add what was spent since."""
        self.input += usage.input_tokens + (usage.cache_read_tokens if includes_cached else 0)
        self.output += usage.output_tokens
        self.cache_read += usage.cache_read_tokens
        self.cache_write += usage.cache_write_tokens + usage.cache_write_1h_tokens
        self.peak = max(self.peak, peak)
        if usage.cost_micros is not None:
            self.cost = (self.cost or 0.0) + usage.cost_micros / 1_000_000

    def json(self) -> dict[str, Any]:
        """As a file has them: 32 bits each, which newer versions fill up rather than overflow."""
        counts = (self.input, self.output, self.cache_read, self.cache_write, self.peak)
        counts_by_name: dict[str, Any] = {
            name: min(MAX_COUNT, count) for name, count in zip(TOKENS, counts, strict=True)
        }
        return counts_by_name if self.cost is None else {**counts_by_name, "total_cost": self.cost}


def counts_cached(model: str | None, messages: Iterable[Message]) -> bool:
    """Whether input that a cache answered is in the input counter: so with OpenAI's models."""
    if model is not None:
        return _OF_OPENAI.match(model) is not None
    return any(isinstance(b, Thinking) and b.provider == "openai" for m in messages for b in m.blocks)


def system_text(system: Any) -> str:
    """A system prompt of any version as one text."""
    if isinstance(system, str):
        return system
    texts = [fields(part).get("text") for part in listed(system)]
    return "\n\n".join(text for text in texts if isinstance(text, str))


def system_list(text: str) -> list[Any]:
    """A system prompt as sofos writes it: one part, to be cached for an hour."""
    return [{"type": "text", "text": text, "cache_control": {"type": "ephemeral", "ttl": "1h"}}] if text else []


def role_of(role: str) -> str:
    """The role that sofos gives a message of ours: a result is said by the user."""
    return "user" if role == "tool" else role


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
    output = result.content if isinstance(result.content, str) else text_of(result.content)
    record: dict[str, Any] = {
        "tool_name": call.name if call else result.name or "", "tool_input": by_key(call.input) if call else {},
        "tool_output": output,
    }  # fmt: skip
    return {"ToolExecution": record}


def shortened(display: list[Any], messages: list[dict[str, Any]]) -> list[Any]:
    """A display transcript as stretches of what its messages show (from, to), and whole items where it shows more."""
    places: dict[bytes, list[int]] = {}
    for index, item in enumerate(messages):
        places.setdefault(compact(item), []).append(index)
    short: list[Any] = []
    after = 0
    for item in display:
        same = places.get(compact(item), [])
        at = bisect_left(same, after)
        if at == len(same):
            short.append({"item": item})
        else:
            earlier = same[at]
            if short and isinstance(short[-1], list) and short[-1][1] == earlier:
                short[-1][1] = earlier + 1
            else:
                short.append([earlier, earlier + 1])
            after = earlier + 1
    return short


def lengthened(short: Any, messages: list[dict[str, Any]]) -> list[Any]:
    """The display transcript again."""
    display: list[Any] = []
    for item in listed(short):
        if isinstance(item, dict):
            display.append(fields(item).get("item"))
        else:
            start, end = cast("list[int]", item)
            display += messages[start:end]
    return display
