"""Conversations of other agents, recorded ones and public ones, read as far as the dialects need them.

These are no format readers (those are a room of their own): they take what a request is made of and leave the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.public import AGENTS, public
from turnlog import Message, Text, ToolCall, ToolResult, Usage
from turnlog.wire import anthropic, openai

RECORDED = Path(__file__).resolve().parents[1] / "formats" / "agents"


def found(agent: str, *patterns: str) -> list[Path]:
    recorded = (RECORDED / agent).glob("recorded*/**/*.jsonl")
    return [*sorted(recorded), *public(*(f"{agent}/{pattern}" for pattern in patterns))]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(errors="replace").splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text") or "") for part in content or [] if isinstance(part, dict))


def pi(path: Path) -> list[Message]:
    messages: list[Message] = []
    for line in _lines(path):
        raw = line.get("message")
        if line.get("type") != "message" or not isinstance(raw, dict):
            continue
        if raw["role"] == "user":
            messages.append(Message(role="user", blocks=[Text(text=_text(raw["content"]))]))
        elif raw["role"] == "toolResult":
            result = ToolResult(
                call=raw["toolCallId"], content=_text(raw["content"]), is_error=bool(raw.get("isError"))
            )
            messages.append(Message(role="tool", blocks=[result]))
        elif raw["role"] == "assistant":
            blocks: list[Any] = []
            for block in raw["content"]:
                if block["type"] == "text":
                    blocks.append(Text(text=block["text"]))
                elif block["type"] == "toolCall":
                    blocks.append(ToolCall(id=block["id"], name=block["name"], input=block["arguments"]))
            spent = raw.get("usage") or {}
            names = ("input", "cacheRead", "cacheWrite")
            usage = Usage(*(spent.get(name) or 0 for name in names), output_tokens=spent.get("output") or 0)
            messages.append(Message(role="assistant", blocks=blocks, usage=usage, model=raw.get("model")))
    return messages


def claude_code(path: Path) -> list[Message]:
    messages: list[Message] = []
    answers: dict[str, dict[str, Any]] = {}
    places: dict[str, int] = {}
    for line in _lines(path):
        raw = line.get("message")
        if line.get("isSidechain") or not isinstance(raw, dict) or line.get("type") not in ("user", "assistant"):
            continue
        content = raw.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        if line["type"] == "assistant":
            id = str(raw.get("id"))
            whole = answers.setdefault(id, {**raw, "content": []})
            whole["content"] += [block for block in blocks if isinstance(block, dict)]
            whole["usage"] = raw.get("usage")
            made = anthropic.draft({"stop_reason": "end_turn", **whole})
            if id in places and places[id] == len(messages) - 1:
                messages[-1] = made
            elif id in places:
                answers[id]["content"] = [block for block in blocks if isinstance(block, dict)]
                messages.append(anthropic.draft({**whole, "content": answers[id]["content"]}))
            else:
                messages.append(made)
            places[id] = len(messages) - 1
            continue
        for block in blocks:
            if isinstance(block, dict) and block.get("type") == "tool_result":
                result = ToolResult(call=str(block.get("tool_use_id")), content=_text(block.get("content")))
                messages.append(Message(role="tool", blocks=[result]))
            elif isinstance(block, dict) and block.get("type") == "text":
                messages.append(Message(role="user", blocks=[Text(text=str(block.get("text") or ""))]))
    return messages


def codex(path: Path) -> list[Message]:
    messages: list[Message] = []
    waiting: list[dict[str, Any]] = []
    usage: dict[str, Any] | None = None

    def settle() -> None:
        if waiting:
            messages.append(openai.draft({"output": list(waiting), "usage": usage}))
            waiting.clear()

    for line in _lines(path):
        payload = line.get("payload") if isinstance(line.get("payload"), dict) else line
        kind = payload.get("type")
        if kind == "token_count":
            settle()
            last = (payload.get("info") or {}).get("last_token_usage") or {}
            usage = {
                "input_tokens": last.get("input_tokens"),
                "input_tokens_details": {"cached_tokens": last.get("cached_input_tokens")},
                "output_tokens": last.get("output_tokens"),
                "output_tokens_details": {"reasoning_tokens": last.get("reasoning_output_tokens")},
            }
        elif kind in ("function_call_output", "custom_tool_call_output"):
            settle()
            output = payload.get("output")
            result = ToolResult(
                call=str(payload.get("call_id")), content=output if isinstance(output, str) else _text(output)
            )
            messages.append(Message(role="tool", blocks=[result]))
        elif kind == "message" and payload.get("role") != "assistant":
            settle()
            messages.append(Message(role="user", blocks=[Text(text=_text(payload.get("content")))]))
        elif kind in ("message", "reasoning", "function_call", "custom_tool_call"):
            waiting.append(payload)
    settle()
    return messages


def gemini_cli(path: Path) -> list[Message]:
    text = path.read_text(errors="replace")
    try:
        rows = json.loads(text).get("messages") or []
    except ValueError:
        rows = list(_lines(path))
    messages: list[Message] = []
    for row in rows:
        if row.get("type") == "user":
            messages.append(Message(role="user", blocks=[Text(text=_text(row.get("content")))]))
        elif row.get("type") == "gemini":
            spent = row.get("tokens") or {}
            cached = spent.get("cached") or 0
            usage = Usage(
                input_tokens=max(0, (spent.get("input") or 0) - cached),
                cache_read_tokens=cached,
                output_tokens=(spent.get("output") or 0) + (spent.get("thoughts") or 0),
                reasoning_tokens=spent.get("thoughts") or 0,
            )
            calls = row.get("toolCalls") or []
            blocks: list[Any] = [Text(text=_text(row.get("content")))]
            blocks += [ToolCall(id=str(c.get("id")), name=str(c.get("name")), input=c.get("args")) for c in calls]
            messages.append(Message(role="assistant", blocks=blocks, usage=usage))
            for call in calls:
                result = ToolResult(call=str(call.get("id")), content=json.dumps(call.get("result")))
                messages.append(Message(role="tool", blocks=[result]))
    return messages


def conversations() -> list[tuple[str, list[Message]]]:
    """Every conversation there is, with a name for it."""
    readers = {
        pi: found("pi", "*.jsonl"),
        claude_code: found("claude-code", "*.jsonl", "**/subagents/*.jsonl"),
        codex: found("codex", "*.jsonl", "**/*.jsonl"),
        gemini_cli: found("gemini-cli", "*.json", "*.jsonl"),
    }
    pairs = {path: reader(path) for reader, paths in readers.items() for path in paths}
    roots = {path: AGENTS if path.is_relative_to(AGENTS) else RECORDED for path in pairs}
    return [(path.relative_to(roots[path]).as_posix(), messages) for path, messages in pairs.items() if messages]
